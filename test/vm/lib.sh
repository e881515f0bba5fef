# Shared by the scripts of this directory: where the cache is, how they fail.
VM=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
CACHE=${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/vm
KERNEL_NAMES="5.10 6.1 6.12 6.18 7.3"

die() {
	echo "${0##*/}: $*" >&2
	exit 125
}

# setup installs what the machines need, where it is missing.
setup() {
	local missing=() pair
	for pair in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static kmod:kmod cpio:cpio xz:xz-utils zstd:zstd lz4:lz4 \
		setpriv:util-linux; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
	done
	# Only the static busybox runs without the host's libraries.
	[ ! -e /usr/share/doc/busybox-static ] && missing+=(busybox-static)
	[ ${#missing[@]} = 0 ] || "$VM/../setup.sh" "${missing[@]}"
}

# pack DIR > CPIO, the form that the kernel unpacks.
pack() {
	(cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet)
}
