# The network namespace and the VRF of this shell after the host's name: user@host:blue:mgmt ~>
# A shell stays in its namespace, whose name is asked for once.
set -g __weir_netns
set -l weir_inode (command readlink /proc/self/ns/net)
while read -l line
    set -l fields (string split ' ' -- $line)
    if test "$fields[4]" = "$weir_inode"; and string match -q '/run/netns/*' -- $fields[5]
        set -g __weir_netns :(string replace /run/netns/ '' -- $fields[5])
    end
end </proc/self/mountinfo

function __weir_vrf
    set -l net $__weir_netns
    while read -l line
        set -l found (string match -r '^0::.*?/vrf/([^/]+)' -- $line)
        and set net "$net:$found[2]"
    end </proc/self/cgroup
    echo -n -s (string replace -ra '[^[:alnum:]:._@-]' '' -- "$net")
end

if not functions -q __weir_prompt_login; and functions -q prompt_login; and functions fish_prompt | string match -q '*prompt_login*'
    functions -c prompt_login __weir_prompt_login
    function prompt_login
        __weir_prompt_login
        __weir_vrf
    end
else if not functions -q __weir_prompt_login; and not functions -q __weir_fish_prompt
    functions -c fish_prompt __weir_fish_prompt
    function fish_prompt
        set -l net (__weir_vrf)
        test -n "$net"; and echo -n -s (string sub -s 2 -- $net) ' '
        __weir_fish_prompt
    end
end
