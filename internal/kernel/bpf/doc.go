// Package bpf loads, fills, attaches, pins and reads back Weir's programs and
// their tables. Every apply publishes a whole generation of both: it is built
// beside the one that runs, and each link then changes over in one step, so no
// packet ever sees half a policy. The package decides nothing: what the tables
// shall hold comes from package plan.
package bpf

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package bpf -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target bpfel,bpfeb -type counter -type identity -type verdict linkEgress ../../../bpf/link_egress.bpf.c
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package bpf -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target bpfel,bpfeb socketCreate ../../../bpf/socket_create.bpf.c
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package bpf -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target bpfel,bpfeb births ../../../bpf/births.bpf.c
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package bpf -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target bpfel,bpfeb classify ../../../bpf/classify.bpf.c
