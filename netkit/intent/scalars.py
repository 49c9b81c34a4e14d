"""The scalar values of an intent: names, versions, addresses, secrets and such, with their syntax."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import PydanticKnownError, core_schema

from netkit.platforms import PLATFORMS

Percent = Annotated[int, Field(ge=0, le=100)]
Priority = Annotated[int, Field(ge=0, le=7)]
Dscp = Annotated[int, Field(ge=0, le=63)]
Asn = Annotated[int, Field(ge=1, le=4_294_967_294)]
VlanNumber = Annotated[int, Field(ge=2, le=4094)]
Metres = Annotated[float, Field(gt=0, le=100_000)]


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """A name from a table that is listed only when a name is not in it, or a schema is asked for."""

    table: Mapping[str, object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": [*self.table], "type": "string"}

    def _check(self, value: str) -> str:
        if value not in self.table:
            *first, last = map(repr, self.table)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}"})
        return value


PlatformName = Annotated[str, OneOf(PLATFORMS)]


@dataclass(frozen=True, slots=True)
class FromFile:
    """Rows, or the name of a CSV file that has them; `load` reads the file before the rows are validated."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "pattern": r"\.csv$"}, handler(schema)]}

    def _check(self, value: object) -> object:
        if not isinstance(value, list | tuple):
            raise ValueError("{given} is neither a file nor a list of rows; name a CSV file, such as devices.csv")
        return value


@dataclass(frozen=True, slots=True)
class ShortForm:
    """An object, or text as a short form of an object with only this key."""

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self._whole, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    def _whole(self, value: object) -> object:
        return {self.key: value} if isinstance(value, str) else value


# A secret written in clear must not be repeated in an error.
UNNAMED_SECRET = (
    "is not the name of a secret; name it in capitals, such as SNMP_AUTH, and never write the secret itself"  # noqa: S105
)


# Validators raise "what; remedy"; {given} is replaced by the value.


def _matching(pattern: str, message: str) -> AfterValidator:
    """A validator of text that must match a pattern as a whole."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


def _check_version(value: object) -> str:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9][0-9A-Za-z.+~-]{0,30}", text):
        raise ValueError("{given} is not a version; start it with a digit, as in 5.16.1, 202411 or 4.35.1F")
    return text


def _check_text(value: str) -> str:
    if not value.isprintable() or any(mark in value for mark in "\"\\'`$"):
        raise ValueError(
            "{given} holds a character that some NOS would read as syntax;"
            " leave out quotes, backslash, backtick, dollar and line breaks"
        )
    return value


def _check_mac(value: str) -> str:
    if not re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", value) or int(value[1], 16) & 1:
        raise ValueError("{given} is not the MAC address of a port; write it in lower case, such as a0:88:c2:00:00:10")
    return value


def _check_interface(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]{0,14}", value) or value.startswith("rail"):
        raise ValueError(
            "{given} cannot name an interface beside the rails;"
            " use the name Linux shows, such as eno1 (rail0, rail1 … are taken)"
        )
    return value


def _check_not_a_number(value: object) -> object:
    # The address types would take 5 for 0.0.0.5.
    if isinstance(value, int):
        raise ValueError("{given} is not an address; write all four parts, such as 192.0.2.1")
    return value


def _check_network(value: object) -> object:
    text = _check_not_a_number(value)
    try:
        return IPv4Network(text) if isinstance(text, str) else text
    except ValueError:
        pass
    try:
        meant = IPv4Network(str(text), strict=False)
    except ValueError:
        raise ValueError(
            "{given} is not an IPv4 network; write its first address and length, as 10.128.0.0/16"
        ) from None
    raise ValueError(f"{{given}} is an address within a network, not the network; write {meant}")


def _check_network_v6(value: object) -> object:
    try:
        return IPv6Network(value) if isinstance(value, str) else value
    except ValueError:
        pass
    try:
        meant = IPv6Network(str(value), strict=False)
    except ValueError:
        raise ValueError(
            "{given} is not an IPv6 network; write its first address and length, as 2001:db8:128::/48"
        ) from None
    raise ValueError(f"{{given}} is an address within a network, not the network; write {meant}")


def _check_not_a_number_v6(value: object) -> object:
    if isinstance(value, int):
        raise ValueError("{given} is not an IPv6 address; write it as 2001:db8::1")
    return value


def _check_server(value: object) -> object:
    text = _check_not_a_number(value)
    try:
        return ip_address(text) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("{given} is not an address; write it as 192.0.2.1 or 2001:db8::1") from None


Name = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?",
        "{given} is not a name; use 1 to 63 letters, digits and inner hyphens",
    ),
]
DottedName = Annotated[
    str,
    _matching(
        r"(?!.*\.\.)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
        "{given} is not a name; use 1 to 63 letters, digits, and inner hyphens, dots and underscores",
    ),
]
"""Of a device."""
RackName = Annotated[
    str,
    _matching(
        r"(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9 ._:/()-]*[A-Za-z0-9)])?",
        "{given} is not the name of a rack; use up to 63 letters, digits, spaces and . _ : / ( ) -",
    ),
]
Version = Annotated[
    str,
    BeforeValidator(_check_version),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": "^[0-9][0-9A-Za-z.+~-]{0,30}$"}, {"type": "number"}]}),
]
Serial = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}",
        "{given} is not a serial number; use 1 to 64 letters, digits, dots, hyphens, underscores and slashes",
    ),
]
PortName = Annotated[
    str,
    _matching(
        r"[A-Za-z][A-Za-z0-9/_.-]{0,31}",
        "{given} is not a port; write it as the NOS does, such as swp1s0, Ethernet8 or Ethernet1/1",
    ),
]
ObjectName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}",
        "{given} is not a name; use 1 to 63 letters, digits, underscores, points and hyphens",
    ),
]
Label = Annotated[
    str,
    _matching(
        r"(?=.{1,64}$)[A-Za-z0-9]([A-Za-z0-9 ._:/=#()-]*[A-Za-z0-9)])?",
        "{given} cannot be the label of a cable; use up to 64 letters, digits, spaces and . _ : / = # ( ) -",
    ),
]
SecretName = Annotated[str, _matching(r"[A-Z][A-Z0-9_]{0,62}", UNNAMED_SECRET)]
DNS_NAME = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
LabelPrefix = Annotated[
    str,
    _matching(
        rf"(?=.{{1,253}}$){DNS_NAME}",
        "{given} is not a DNS name; write it in lower case, such as nvidia.com",
    ),
]
ResourceName = Annotated[
    str,
    _matching(
        rf"(?=.{{1,253}}/){DNS_NAME}/[A-Za-z0-9]([A-Za-z0-9_.-]{{0,61}}[A-Za-z0-9])?",
        "{given} is not a resource of a device plugin; write it as prefix/name, such as nvidia.com/gpu",
    ),
]
Namespace = Annotated[
    str,
    _matching(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "{given} is not a name in Kubernetes; use 1 to 63 lower-case letters, digits and inner hyphens",
    ),
]
Image = Annotated[
    str,
    _matching(
        r"/?[a-zA-Z0-9][a-zA-Z0-9./_:@#+-]{0,254}",
        "{given} is not an image; write it as registry/name:tag, or the path of a file",
    ),
]
ConfigPath = Annotated[
    str,
    Field(max_length=512),
    _matching(
        r"[^\s/*?](?:(?! / $)[ -~])*(?<! )(?<! /)|[*?](?! /)[ -~]+(?<! )(?<! /)",
        "{given} is not the path of a part of a configuration;"
        " write it from the outside in, such as `router bgp / neighbor 10.0.0.9 *`",
    ),
]
Text = Annotated[str, Field(max_length=128), AfterValidator(_check_text)]
Breakout = Annotated[
    str,
    _matching(
        r"[1248]x(25|50|100|200|400|800|1600)G",
        "{given} is not a breakout; write it as 2x400G: ports per cage, x, speed of one port",
    ),
]
Pci = Annotated[
    str,
    _matching(
        r"[0-9a-f]{4}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]",
        "{given} is not a PCI address; write it in full and in lower case, such as 0000:18:00.0",
    ),
]
Mac = Annotated[str, AfterValidator(_check_mac)]
Interface = Annotated[str, AfterValidator(_check_interface)]
Timezone = Annotated[
    str,
    _matching(
        r"(?=.{1,40}$)[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}",
        "{given} is not a time zone; write it as Etc/UTC or Europe/Berlin",
    ),
]
Address = Annotated[IPv4Address, BeforeValidator(_check_not_a_number)]
AddressWithLength = Annotated[IPv4Interface, BeforeValidator(_check_not_a_number)]
Network = Annotated[IPv4Network, BeforeValidator(_check_network)]
AddressV6 = Annotated[IPv6Address, BeforeValidator(_check_not_a_number_v6)]
Server = Annotated[IPv4Address | IPv6Address, BeforeValidator(_check_server)]
NetworkV6 = Annotated[IPv6Network, BeforeValidator(_check_network_v6)]
CatalogName = Annotated[str, Field(min_length=1, max_length=64)]


def name_pattern(*allowed: str, marks: str = "-") -> AfterValidator:
    """The validator of a name pattern with the given fields, and these marks between letters and digits."""
    words = "hyphens" if marks == "-" else "hyphens, dots, underscores"

    def check(value: str) -> str:
        try:
            parts = list(string.Formatter().parse(value))
        except ValueError:
            raise ValueError("{given} has a brace without its partner; write fields as {" + allowed[0] + "}") from None
        for literal, field, spec, conversion in parts:
            if not re.fullmatch(rf"[A-Za-z0-9{re.escape(marks)}]*", literal) or ".." in literal:
                raise ValueError("{given} is not a name pattern; use letters, digits, " + words + " and {fields}")
            if field is not None and (field not in allowed or conversion or not re.fullmatch(r"(0[1-9])?", spec or "")):
                whole = f"{field}!{conversion}" if conversion else f"{field}:{spec}" if spec else field
                known = ", ".join(f"{{{name}}}" for name in allowed)
                raise ValueError(
                    f"the field {{{whole}}} is not known; use {known}, with a width as in {{{allowed[0]}:02}}"
                )
        if value.strip(marks) != value:
            raise ValueError("{given} starts or ends with a mark; a name starts and ends with a letter or digit")
        return value

    return AfterValidator(check)
