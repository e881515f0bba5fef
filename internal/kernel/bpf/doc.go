// Package bpf loads, fills, attaches, pins and reads back Weir's programs and
// their tables. Every apply publishes a whole generation of both: it is built
// beside the one that runs, and each link then changes over in one step, so no
// packet ever sees half a policy. The package decides nothing: what the tables
// shall hold comes from package plan.
package bpf

//go:generate -command object go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package bpf -target bpfel,bpfeb -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu"
//go:generate object -type limited linkEgress ../../../bpf/link_egress.bpf.c
//go:generate object socketCreate ../../../bpf/socket_create.bpf.c
//go:generate object limit ../../../bpf/limit.bpf.c
//go:generate object depart ../../../bpf/depart.bpf.c
//go:generate object linkIngress ../../../bpf/link_ingress.bpf.c
//go:generate object -type limited socketIngress ../../../bpf/socket_ingress.bpf.c
//go:generate object pace ../../../bpf/pace.bpf.c
//go:generate object window ../../../bpf/window.bpf.c
//go:generate object -type care tcpMemory ../../../bpf/tcp_memory.bpf.c
//go:generate object tcpRefuse ../../../bpf/tcp_refuse.bpf.c
//go:generate object back ../../../bpf/back.bpf.c
//go:generate object relimit ../../../bpf/relimit.bpf.c
//go:generate object retime ../../../bpf/retime.bpf.c
//go:generate object open ../../../bpf/open.bpf.c
//go:generate object adopt ../../../bpf/adopt.bpf.c
//go:generate object sums ../../../bpf/sums.bpf.c
//go:generate object births ../../../bpf/births.bpf.c
//go:generate object classify ../../../bpf/classify.bpf.c
