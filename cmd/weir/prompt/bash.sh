# The network namespace and the VRF of this shell after the host's name: user@host:blue:mgmt:~$
__weir_vrf() {
	local line name
	__weir_net=
	for name in /run/netns/*; do
		if [[ /proc/self/ns/net -ef $name ]]; then
			__weir_net=:${name##*/}
			break
		fi
	done
	while IFS= read -r line; do
		case $line in
		0::*/vrf/?*)
			line=${line#*/vrf/}
			__weir_net+=:${line%%/*}
			;;
		esac
	done </proc/self/cgroup
	__weir_net=${__weir_net//[^[:alnum:]:._@-]/}
} 2>/dev/null
if [[ $PS1 != *__weir_net* ]]; then
	PROMPT_COMMAND="__weir_vrf${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
	case $PS1 in
	*\\h*) PS1=${PS1/'\h'/'\h${__weir_net}'} ;;
	*\\H*) PS1=${PS1/'\H'/'\H${__weir_net}'} ;;
	*) PS1='${__weir_net:+${__weir_net#:} }'$PS1 ;;
	esac
fi
