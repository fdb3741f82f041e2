package main

import (
	"flag"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queueOptions are the arguments of the scenario `queue`.
type queueOptions struct {
	producers, consumers, items int
}

type queueLine struct {
	Driver  string       `json:"driver"`
	Version string       `json:"version"`
	Queue   queueFigures `json:"queue"`
}

type queueFigures struct {
	Producers int     `json:"producers"`
	Consumers int     `json:"consumers"`
	Items     int     `json:"items"`
	WallS     float64 `json:"wall_s"`
	CPUS      float64 `json:"cpu_s"`
	CycleNs   float64 `json:"cycle_ns"`
}

func parseQueue(flags *flag.FlagSet, args []string) (queueOptions, error) {
	var options queueOptions
	flags.IntVar(&options.producers, "producers", 1, "")
	flags.IntVar(&options.consumers, "consumers", 1, "")
	flags.IntVar(&options.items, "items", 1_000_000, "")
	if err := parseFlags(flags, args); err != nil {
		return options, err
	}
	if options.producers < 1 || options.consumers < 1 || options.items < 1 {
		return options, fmt.Errorf("producers, consumers and items must each be at least 1")
	}
	return options, nil
}

// runQueue passes every item through a work queue once: added by a producer, got and finished by a consumer.
func runQueue(options queueOptions) (*queueLine, error) {
	items := make([]string, options.items)
	for i := range items {
		items[i] = fmt.Sprintf("namespace-%03d/name-%09d", i%100, i)
	}
	queue := workqueue.NewTyped[string]()
	var producers, consumers sync.WaitGroup
	finished := make([]int, options.consumers)

	watch, err := startStopwatch()
	if err != nil {
		return nil, err
	}
	for c := range options.consumers {
		consumers.Go(func() { finished[c] = consume(queue) })
	}
	for p := range options.producers {
		share := items[p*len(items)/options.producers : (p+1)*len(items)/options.producers]
		producers.Go(func() {
			for _, item := range share {
				queue.Add(item)
			}
		})
	}
	producers.Wait()
	// A queue that is shut down still hands out what it has.
	queue.ShutDown()
	consumers.Wait()
	spent, err := watch.stop()
	if err != nil {
		return nil, err
	}

	total := 0
	for _, count := range finished {
		total += count
	}
	if total != options.items {
		return nil, fmt.Errorf("%d items were finished, not %d", total, options.items)
	}
	return &queueLine{
		Driver:  driverName,
		Version: clientGoVersion(),
		Queue: queueFigures{
			Producers: options.producers,
			Consumers: options.consumers,
			Items:     options.items,
			WallS:     spent.wall.Seconds(),
			CPUS:      spent.cpu.Seconds(),
			CycleNs:   float64(spent.wall/time.Nanosecond) / float64(options.items),
		},
	}, nil
}

// consume gets and finishes items until the queue is shut down and empty, and counts them.
func consume(queue workqueue.TypedInterface[string]) int {
	count := 0
	for {
		item, shutdown := queue.Get()
		if shutdown {
			return count
		}
		queue.Done(item)
		count++
	}
}
