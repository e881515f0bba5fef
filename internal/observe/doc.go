// Package observe measures what the kernel does for packets, and in whose time: it
// loads the meter's programs (bpf/meter.bpf.c, bpf/samples.bpf.c), reads what they
// count, and reads the kernel's own counters beside them. A meter lives as long as the process
// that started it; nothing is pinned. What the numbers mean is package cost's to say.
package observe

//go:generate -command object go tool bpf2go -cc clang-14 -strip llvm-strip-14 -go-package observe -target bpfel,bpfeb -cflags "-O2 -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu"
//go:generate object -type work -type owned meter ../../bpf/meter.bpf.c
//go:generate object samples ../../bpf/samples.bpf.c
