#!/usr/bin/env bash
# setup.sh [PACKAGE...]: install Debian packages that are missing; without
# arguments, those of the tests. Silent where there is nothing to do.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
wanted=("$@")
optional=()
if [ $# = 0 ]; then
	wanted=(git iproute2 nftables iptables iperf3 bpftool openssl openssh-client openssh-server ethtool util-linux kmod procps libbpf-dev)
	# The BPF objects are built by exactly this compiler, which not every release
	# has: without it, check-generated says so. perf is a witness of one test.
	optional=(clang-14 llvm-14 linux-perf)
fi

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}
missing=()
for p in "${wanted[@]}" "${optional[@]}"; do installed "$p" || missing+=("$p"); done
[ ${#missing[@]} != 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "setup: not a Debian system: please install ${missing[*]}" >&2
	exit 1
elif [ "$(id -u)" != 0 ]; then
	echo "setup: not root: please install ${missing[*]}" >&2
	exit 1
fi
apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=20)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# sort_out leaves out the optional packages that this release does not have.
sort_out() {
	install=()
	local p
	for p in "${missing[@]}"; do
		[[ " ${optional[*]} " != *" $p "* ]] || apt-cache show "$p" >/dev/null 2>&1 || continue
		install+=("$p")
	done
}
sort_out
if [ ${#install[@]} -lt ${#missing[@]} ] || ! apt-cache show "${install[@]}" >/dev/null 2>&1; then
	"${apt[@]}" update >"$log" 2>&1 || true # one broken source of many is no reason to stop
	sort_out
fi
[ ${#install[@]} != 0 ] || exit 0
echo "setup: installing ${install[*]}" >&2
if ! "${apt[@]}" install -y --no-install-recommends "${install[@]}" >>"$log" 2>&1; then
	echo "setup: can not install ${install[*]} (no network?):" >&2
	tail -n 5 "$log" >&2
	exit 1
fi
