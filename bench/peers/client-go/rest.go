package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// restLook is how often it is looked whether this process works.
	restLook = 20 * time.Millisecond
	// restLimit is the most CPU time from one look to the next of a process that rests.
	restLimit = 400 * time.Microsecond
	// restPatience is how long a process may take to come to rest.
	restPatience = 5 * time.Minute
)

// stopAtRest ends the measurement: the wall time now, the CPU time when this process has come to rest. What was done has
// left work to the garbage collector, which counts too.
func (w stopwatch) stopAtRest(ctx context.Context) (spent, error) {
	total, err := w.stop()
	if err != nil {
		return total, err
	}
	for deadline := time.Now().Add(restPatience); time.Now().Before(deadline); {
		select {
		case <-time.After(restLook):
		case <-ctx.Done():
			return total, context.Cause(ctx)
		}
		now, err := w.stop()
		if err != nil {
			return total, err
		}
		used := now.cpu - total.cpu
		if used <= restLimit {
			return total, nil
		}
		total.cpu = now.cpu
	}
	return total, fmt.Errorf("client-go does not come to rest within %s", restPatience)
}
