# The network namespace and the VRF of this shell after the host's name: user@host:blue:mgmt:~%
__weir_vrf() {
	local line name net=
	for name in /run/netns/*(N); do
		if [[ /proc/self/ns/net -ef $name ]]; then
			net=:${name:t}
			break
		fi
	done
	while IFS= read -r line; do
		if [[ $line == 0::*/vrf/?* ]]; then
			line=${line#*/vrf/}
			net+=:${line%%/*}
		fi
	done </proc/self/cgroup
	psvar[9]=${net//[^[:alnum:]:._@-]/}
}
if [[ $PROMPT != *%9v* ]]; then
	typeset -ga precmd_functions
	precmd_functions+=(__weir_vrf)
	case $PROMPT in
	*%m*) PROMPT=${PROMPT/\%m/%m%9v} ;;
	*%M*) PROMPT=${PROMPT/\%M/%M%9v} ;;
	*) PROMPT="%(9V.%9v .)$PROMPT" ;;
	esac
fi
