#!/bin/bash
# First boot of leaf01: just enough to be reached over the management network.
# Give its URL to this switch in DHCP option 239. It adds to the factory configuration, whose ports stay as they are.
set -eu

# Either file, if there is one, would set docker_routing_config_mode back at the next boot.
rm -f /etc/sonic/minigraph.xml /etc/sonic/golden_config_db.json

first_boot=$(mktemp --suffix=.json)
cat > "$first_boot" <<'CONFIG_DB'
{
 "DEVICE_METADATA": {
  "localhost": {"hostname": "leaf01"}
 },
 "MGMT_PORT": {
  "eth0": {"alias": "eth0", "admin_status": "up"}
 },
 "MGMT_INTERFACE": {
  "eth0|192.0.2.10/24": {"gwaddr": "192.0.2.1"}
 },
 "MGMT_VRF_CONFIG": {
  "vrf_global": {"mgmtVrfEnabled": "true"}
 }
}
CONFIG_DB
config load -y "$first_boot"
rm -f "$first_boot"

id -u netkit > /dev/null 2>&1 || useradd --create-home --shell /bin/bash --groups sudo,docker,redis netkit
usermod --password '@secret:LOGIN_HASH@' netkit

# From here on the static address takes over from DHCP.
sonic-db-cli CONFIG_DB del 'ZTP|mode'
config save -y
systemctl restart hostname-config interfaces-config
exit 0
