package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// settleTime passes between the end of a phase and the measurement of what memory it leaves.
const settleTime = 2 * time.Second

// sync starts the informer, and waits until every handler was told of every pod.
func (r *run) sync(ctx context.Context) (*syncFigures, error) {
	base, err := readMemory()
	if err != nil {
		return nil, err
	}
	if err := resetPeak(); err != nil {
		return nil, err
	}
	watch, err := startStopwatch()
	if err != nil {
		return nil, err
	}
	r.factory.StartWithContext(ctx)
	for _, h := range r.handlers {
		select {
		case <-h.synced:
		case <-ctx.Done():
			return nil, fmt.Errorf("not every handler was told of %d pods: %w", r.objects, context.Cause(ctx))
		}
	}
	spent, err := watch.stopAtRest(ctx)
	if err != nil {
		return nil, err
	}
	after, err := settle(ctx)
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	freed, err := readMemory()
	if err != nil {
		return nil, err
	}
	return &syncFigures{
		WallS:    spent.wall.Seconds(),
		CPUS:     spent.cpu.Seconds(),
		RSSBase:  base.now,
		RSSPeak:  after.peak,
		RSSAfter: after.now,
		RSSFreed: freed.now,
		Objects:  len(r.informer.GetStore().ListKeys()),
	}, nil
}

// relist makes the informer list again, and waits for the event that comes when it watches again.
func (r *run) relist(ctx context.Context) (*relistFigures, error) {
	before, err := readMemory()
	if err != nil {
		return nil, err
	}
	if err := resetPeak(); err != nil {
		return nil, err
	}
	watch, err := startStopwatch()
	if err != nil {
		return nil, err
	}
	marker, err := r.server.expire(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.awaitAll(ctx, marker); err != nil {
		return nil, err
	}
	spent, err := watch.stopAtRest(ctx)
	if err != nil {
		return nil, err
	}
	asked, found := r.requests.firstListingAfter(watch.started)
	if !found {
		return nil, fmt.Errorf("the marker came, but client-go has not listed again")
	}
	after, err := settle(ctx)
	if err != nil {
		return nil, err
	}
	return &relistFigures{
		WallS:     spent.wall.Seconds(),
		PauseS:    asked.Sub(watch.started).Seconds(),
		CPUS:      spent.cpu.Seconds(),
		RSSBefore: before.now,
		RSSPeak:   after.peak,
		RSSAfter:  after.now,
	}, nil
}

// events takes events at full speed, until every handler has heard the last.
func (r *run) events(ctx context.Context) (*eventsFigures, error) {
	before := r.changesHeard()
	watch, err := startStopwatch()
	if err != nil {
		return nil, err
	}
	sent, err := r.server.events(ctx, r.options.events, r.options.over, 0)
	if err != nil {
		return nil, err
	}
	// The server renders all events before it answers, and then sends them. CPU time counts from before, so that nothing is
	// left out if the first come before the answer.
	watch.started = time.Now()
	if err := r.awaitAll(ctx, sent.last); err != nil {
		return nil, err
	}
	spent, err := watch.stopAtRest(ctx)
	if err != nil {
		return nil, err
	}
	count := r.options.events
	for i, heard := range r.changesHeard() {
		// The informer merges nothing: what does not come to every handler was lost.
		if heard-before[i] != uint64(count) {
			return nil, fmt.Errorf("handler %d heard %d events, not %d", i, heard-before[i], count)
		}
	}
	return &eventsFigures{
		Count: count,
		WallS: spent.wall.Seconds(),
		CPUS:  spent.cpu.Seconds(),
		PerS:  float64(count) / spent.wall.Seconds(),
		CPUUs: microseconds(spent.cpu) / float64(count),
	}, nil
}

// latency takes events at a given rate, and measures how long each takes to the first handler.
func (r *run) latency(ctx context.Context) (*latencyFigures, error) {
	first := r.handlers[0]
	arrivals := newArrivals(r.options.ratedEvents)
	first.arrivals.Store(arrivals)
	watch, err := startStopwatch()
	if err != nil {
		return nil, err
	}
	events, err := r.server.events(ctx, r.options.ratedEvents, r.options.over, r.options.rate)
	if err != nil {
		return nil, err
	}
	if err := r.awaitAll(ctx, events.last); err != nil {
		return nil, err
	}
	spent, err := watch.stopAtRest(ctx)
	if err != nil {
		return nil, err
	}
	first.arrivals.Store(nil)
	sent, err := r.server.sent(ctx, events)
	if err != nil {
		return nil, err
	}
	delays, err := arrivals.delays(events, sent)
	if err != nil {
		return nil, err
	}
	slices.Sort(delays)
	return &latencyFigures{
		Count: len(delays),
		P50Us: microseconds(percentile(delays, 50)),
		P99Us: microseconds(percentile(delays, 99)),
		MaxUs: microseconds(percentile(delays, 100)),
		CPUUs: microseconds(spent.cpu) / float64(len(delays)),
	}, nil
}

// awaitAll waits until every handler has heard of this version.
func (r *run) awaitAll(ctx context.Context, version uint64) error {
	for _, h := range r.handlers {
		if err := h.await(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// changesHeard is how many changes each handler was told of so far.
func (r *run) changesHeard() []uint64 {
	var heard []uint64
	for _, h := range r.handlers {
		heard = append(heard, h.changes.Load())
	}
	return heard
}

// settle lets two seconds pass, and measures memory then.
func settle(ctx context.Context) (memory, error) {
	select {
	case <-time.After(settleTime):
		return readMemory()
	case <-ctx.Done():
		return memory{}, context.Cause(ctx)
	}
}

// percentile is the smallest of the sorted values that is not below this part of them, in percent.
func percentile(sorted []int64, percent int) time.Duration {
	rank := (len(sorted)*percent + 99) / 100
	return time.Duration(sorted[max(rank, 1)-1])
}

func microseconds(duration time.Duration) float64 {
	return float64(duration) / float64(time.Microsecond)
}
