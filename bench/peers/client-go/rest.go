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
	// restQuiet is how long a process has to rest. One that others keep from working seems to rest too, for a while.
	restQuiet = 100 * time.Millisecond
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
	restingSince, before := time.Now(), total.cpu
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
		if now.cpu-before > restLimit {
			restingSince, total.cpu = time.Now(), now.cpu
		} else if time.Since(restingSince) >= restQuiet {
			return total, nil
		}
		before = now.cpu
	}
	return total, fmt.Errorf("client-go does not come to rest within %s", restPatience)
}
