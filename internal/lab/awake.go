package lab

import "os"

// cpuLatency is the file by which a process bounds how long a CPU may take to wake up, for as
// long as it has it open: a signed 32-bit number of us, in the byte order of the host.
const cpuLatency = "/dev/cpu_dma_latency"

// stayAwake keeps the CPUs from sleeping until the session ends, where the kernel can: it has
// them wait for work in a loop.
//
// One that sleeps is late when a timer rings, by tens of microseconds on bare metal, and by
// milliseconds in a virtual machine whose host has other work. TCP that paces itself makes up
// for half a packet of that, and HTB for a burst; what is later is lost to the line, in any arm.
func (s *session) stayAwake() error {
	file, err := os.OpenFile(cpuLatency, os.O_WRONLY, 0)
	if err != nil {
		return nil // a kernel without CPU idling, or a place without that device
	}
	if _, err := file.Write(make([]byte, 4)); err != nil {
		_ = file.Close()
		return err
	}
	s.onClose(file.Close)
	s.result.Environment.Awake = true
	return nil
}
