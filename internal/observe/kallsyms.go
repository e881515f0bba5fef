package observe

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-net/weir/internal/cost"
)

// A function is where the code of one lies in the kernel.
type function struct {
	name     string
	from, to uint64
}

// errNoAddresses says that the kernel hides where its functions are.
var errNoAddresses = errors.New("the kernel hides its addresses (kernel.kptr_restrict, or no CAP_SYSLOG)")

// findFunctions returns where the functions are that wanted names, parts that the compiler has split off
// included. They are in order.
func findFunctions(wanted func(name string) bool) ([]function, error) {
	var found []function
	var all []uint64
	err := symbols(func(address uint64, kind, name string) {
		if !strings.Contains("tTwW", kind) {
			return
		}
		all = append(all, address)
		base, _, _ := strings.Cut(name, ".")
		if wanted(base) {
			found = append(found, function{base, address, 0})
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	if len(all) == 0 || all[len(all)-1] == 0 {
		return nil, errNoAddresses
	}
	all = slices.Compact(all)
	for i := range found {
		at, _ := slices.BinarySearch(all, found[i].from)
		found[i].to = ^uint64(0)
		if at+1 < len(all) {
			found[i].to = all[at+1]
		}
	}
	slices.SortFunc(found, func(a, b function) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(found, func(a, b function) bool { return a.from == b.from }), nil
}

// FindAccounting finds out where the kernel puts the time of interrupts: the code that takes it out of
// tasks is there or is not, and hidden addresses do not hide names.
func FindAccounting() (cost.Accounting, error) {
	way := cost.ByTick
	err := symbols(func(_ uint64, _, name string) {
		if name == "irqtime_account_irq" {
			way = cost.ByIRQ
		}
	})
	return way, err
}

// symbols tells of each symbol of the kernel and its modules.
func symbols(of func(address uint64, kind, name string)) error {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return fmt.Errorf("find functions of the kernel: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return fmt.Errorf("find functions of the kernel: %w", err)
		}
		of(address, fields[1], fields[2])
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("find functions of the kernel: %w", err)
	}
	return nil
}
