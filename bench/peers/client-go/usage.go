package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// spent is what a piece of work took of time, and of CPU time in all threads.
type spent struct {
	wall, cpu time.Duration
}

// stopwatch measures a piece of work from its start on.
type stopwatch struct {
	started time.Time
	cpu     time.Duration
}

func startStopwatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{started: time.Now(), cpu: cpu}, err
}

func (w stopwatch) stop() (spent, error) {
	wall := time.Since(w.started)
	cpu, err := cpuTime()
	return spent{wall: wall, cpu: cpu - w.cpu}, err
}

// cpuTime is what this process has used so far, in user space and in the kernel.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("the CPU time used cannot be read: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// memory is what of this process is resident, in bytes: now, and at most since the peak was reset.
type memory struct {
	now, peak uint64
}

func readMemory() (memory, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return memory{}, fmt.Errorf("memory can only be measured on Linux: %w", err)
	}
	return parseMemory(status)
}

func parseMemory(status []byte) (memory, error) {
	now, err := statusBytes(status, "VmRSS:")
	if err != nil {
		return memory{}, err
	}
	peak, err := statusBytes(status, "VmHWM:")
	return memory{now: now, peak: peak}, err
}

// statusBytes finds one field of /proc/self/status, which is given in units of 1024 bytes.
func statusBytes(status []byte, field string) (uint64, error) {
	for line := range bytes.Lines(status) {
		words := bytes.Fields(line)
		if len(words) == 3 && string(words[0]) == field && string(words[2]) == "kB" {
			kilobytes, err := strconv.ParseUint(string(words[1]), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s in /proc/self/status: %w", field, err)
			}
			return kilobytes * 1024, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s in kB", field)
}

// resetPeak makes the peak start again from what is resident now.
func resetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("the peak of memory cannot be reset: %w", err)
	}
	return nil
}
