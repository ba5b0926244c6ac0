# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Kernel users: NVMe over RDMA, target and host of the stock kernel, over one device. Fast-register MRs and
# their invalidation, SRQ-less receive queues, rdma_cm in the kernel, QPs drained at disconnect.
# lists: check full
# limit: 120
. "$SUITE/lib.sh"

for module in nvmet-rdma nvme-rdma; do
	modprobe -q $module || skip "this kernel has no $module"
done
nvmet=/sys/kernel/config/nvmet

target_up() { # ADDRESS FAMILY
	mkdir $nvmet/subsystems/weft && echo 1 >$nvmet/subsystems/weft/attr_allow_any_host || return 1
	mkdir $nvmet/subsystems/weft/namespaces/1 || return 1
	echo 1 >$nvmet/subsystems/weft/namespaces/1/buffered_io
	echo -n "$TMP/disk" >$nvmet/subsystems/weft/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/weft/namespaces/1/enable || return 1
	mkdir $nvmet/ports/1 && cd $nvmet/ports/1 || return 1
	echo rdma >addr_trtype
	echo "$2" >addr_adrfam
	echo "$1" >addr_traddr
	echo 4420 >addr_trsvcid
	ln -s $nvmet/subsystems/weft subsystems/weft
}

target_down() {
	rm -f $nvmet/ports/1/subsystems/weft
	rmdir $nvmet/ports/1
	echo 0 >$nvmet/subsystems/weft/namespaces/1/enable
	rmdir $nvmet/subsystems/weft/namespaces/1 $nvmet/subsystems/weft
}

host_up() { # ADDRESS
	echo "transport=rdma,traddr=$1,trsvcid=4420,nqn=weft,nr_io_queues=2,queue_size=32" >/dev/nvme-fabrics || return 1
	wait_for 20 disk_is_there
}

disk_is_there() {
	local name
	for name in /sys/class/nvme/nvme*; do
		[ -e "$name" ] || return 1
		NVME=${name##*/}
	done
	DISK=/dev/${NVME}n1
	[ -b "$DISK" ]
}

host_down() {
	local name
	for name in /sys/class/nvme/nvme*; do
		[ ! -e "$name" ] || echo 1 >"$name/delete_controller"
	done
	wait_for 20 no_disk
}

no_disk() {
	! compgen -G '/sys/class/nvme/nvme*' >/dev/null
}

# Random bytes through the wire and back, in blocks of many sizes, past the page cache.
bytes() { # MiB
	disk_is_there || return 1
	dd if=/dev/urandom of="$TMP/data" bs=1M count="$1" status=none || return 1
	dd if="$TMP/data" of="$DISK" bs=256k oflag=direct status=none || return 1
	cmp "$TMP/data" <(head -c "$(($1 * 1048576))" "$TMP/disk") || { echo "the target's file differs"; return 1; }
	for block in 4k 64k 1M; do
		dd if="$DISK" of="$TMP/back" bs=$block count=$(($1 * 1048576 / $(numfmt --from=iec ${block^^}))) \
			iflag=direct status=none || return 1
		cmp "$TMP/data" "$TMP/back" || { echo "blocks of $block differ"; return 1; }
	done
}

used_the_device() { # LEAST-PACKETS
	at_least "packets received" $(($(counter a rcvd_pkts) - before)) "$1"
	for name in req_remote_access_errors resp_remote_access_errors req_cqe_error; do
		has_counter a $name || continue
		equal $name "$(counter a $name)" 0
	done
}

nothing_left() {
	[[ $(rdma resource show qp dev "$A_DEV") != *nvme* ]] && [[ $(rdma resource show mr dev "$A_DEV") != *nvme* ]]
}

# Whatever happens, the kernel's users go before the device does.
cleanup() {
	host_down
	[ ! -d $nvmet/subsystems/weft ] || target_down 2>/dev/null
	cd /
	rmmod nvme_rdma nvmet_rdma 2>/dev/null
}

mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
[ -c /dev/nvme-fabrics ] || skip "no /dev/nvme-fabrics"
mib=4
[ "$LEVEL" = full ] && mib=24
truncate -s 32M "$TMP/disk"
topo_self 4200
trap cleanup EXIT
for family in ipv4:$A_IP4 ipv6:$A_IP6; do
	before=$(counter a rcvd_pkts)
	part "target, ${family%%:*}" target_up "${family#*:}" "${family%%:*}"
	part "connect" host_up "${family#*:}"
	part "$mib MiB written and read back" bytes $mib
	part "over the device" used_the_device $((mib * 256))
	part "disconnect" host_down
	part "target down" target_down
	part "all freed" wait_for 20 nothing_left
done
part "connect for the link's end" target_up "$A_IP4" ipv4
part "connected" host_up "$A_IP4"
part "link del under a kernel user" rdma link del "$A_DEV"
part "the device goes" wait_for 30 no_device
finish
