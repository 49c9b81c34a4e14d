"""Errors of the database contain no password, wherever the URL has it."""

import pytest
from sqlalchemy.exc import SQLAlchemyError

from netkit.errors import StoreError
from netkit.store.database import connectable, plain_errors, url_of


@pytest.mark.parametrize("where", ["u:hush@127.0.0.1/d", "127.0.0.1/d?user=u&password=hush&sslpassword=hush"])
def test_an_error_contains_no_password(where: str) -> None:
    pytest.importorskip("psycopg")
    engine = connectable(url_of(f"postgresql://{where}"))
    with pytest.raises(StoreError) as refused, plain_errors(engine):
        raise SQLAlchemyError("it is gone")
    assert "it is gone" in str(refused.value)
    assert "hush" not in str(refused.value)
