package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// readKeyCount is how many keys are read, over and over.
	readKeyCount = 10_000
	// readTime is how long each kind of read is done.
	readTime = 500 * time.Millisecond
	// busySpan is for how long events are asked for at a time while reads go on.
	busySpan = 300 * time.Millisecond
)

// reader does the reads, in one goroutine.
type reader struct {
	run       *run
	keys      []readKey
	selectors []labels.Selector
	// seen depends on all that was read, so that no reading can be left out by the compiler.
	seen int
}

// reads does each kind of read on its own, and again while events come at full speed.
func (r *run) reads(ctx context.Context) (*readsFigures, error) {
	keys, err := r.server.keys(ctx, min(readKeyCount, r.objects))
	if err != nil {
		return nil, err
	}
	reader := &reader{run: r, keys: keys}
	for _, key := range keys {
		reader.selectors = append(reader.selectors, labels.SelectorFromSet(labels.Set{"app": key.app}))
	}
	var figures readsFigures
	if figures.readTimes, err = reader.all(ctx); err != nil {
		return nil, err
	}
	if figures.Busy, err = r.busyReads(ctx, reader); err != nil {
		return nil, fmt.Errorf("while events come: %w", err)
	}
	return &figures, nil
}

// busyReads does the reads while events come as fast as the informer takes them.
func (r *run) busyReads(ctx context.Context, reader *reader) (busyReads, error) {
	var times readTimes
	done := make(chan error, 1)
	go func() {
		var err error
		times, err = reader.all(ctx)
		done <- err
	}()
	started, events, count := time.Now(), 0, 1_000
	for {
		begun := time.Now()
		sent, err := r.server.events(ctx, count, r.options.over, 0)
		if err != nil {
			return busyReads{}, err
		}
		if err := r.awaitAll(ctx, sent.last); err != nil {
			return busyReads{}, err
		}
		events += count
		select {
		case err := <-done:
			return busyReads{readTimes: times, EventsPerS: float64(events) / time.Since(started).Seconds()}, err
		default:
		}
		count = nextCount(count, time.Since(begun))
	}
}

// nextCount is how many events take busySpan, if so many took so long.
func nextCount(count int, took time.Duration) int {
	return int(min(max(float64(count)*float64(busySpan)/float64(took), 100), 1_000_000))
}

// all does every kind of read.
func (r *reader) all(ctx context.Context) (readTimes, error) {
	get, getFound, err := r.measure(ctx, 1_000, r.get)
	if err != nil {
		return readTimes{}, err
	}
	if getFound != 1 {
		return readTimes{}, fmt.Errorf("a get found %v pods on average, not 1", getFound)
	}
	namespace, namespaceFound, err := r.measure(ctx, 1, r.namespace)
	if err != nil {
		return readTimes{}, err
	}
	index, indexFound, err := r.measure(ctx, 1, r.index)
	if err != nil {
		return readTimes{}, err
	}
	selector, selectorFound, err := r.measure(ctx, 1, r.selector)
	if err != nil {
		return readTimes{}, err
	}
	return readTimes{
		GetNs:          get,
		NamespaceUs:    namespace / 1_000,
		NamespaceFound: namespaceFound,
		IndexUs:        index / 1_000,
		IndexFound:     indexFound,
		SelectorUs:     selector / 1_000,
		SelectorFound:  selectorFound,
	}, nil
}

// measure does one kind of read for a while, of random keys, and looks at the clock after every so many calls. It returns
// the nanoseconds of a call and how many pods a call found, on average.
func (r *reader) measure(ctx context.Context, perLook int, read func(key int) (int, error)) (float64, float64, error) {
	calls, found := 0, 0
	started := time.Now()
	for ctx.Err() == nil {
		for range perLook {
			count, err := read(rand.IntN(len(r.keys)))
			if err != nil {
				return 0, 0, err
			}
			found += count
			calls++
		}
		if passed := time.Since(started); passed >= readTime {
			return float64(passed) / float64(calls), float64(found) / float64(calls), nil
		}
	}
	return 0, 0, context.Cause(ctx)
}

func (r *reader) get(key int) (int, error) {
	pod, err := r.run.lister.Pods(r.keys[key].namespace).Get(r.keys[key].name)
	if err != nil {
		return 0, err
	}
	r.see(pod)
	return 1, nil
}

func (r *reader) namespace(key int) (int, error) {
	pods, err := r.run.lister.Pods(r.keys[key].namespace).List(labels.Everything())
	return r.seeAll(pods), err
}

func (r *reader) index(key int) (int, error) {
	objects, err := r.run.informer.GetIndexer().ByIndex(nodeIndex, r.keys[key].node)
	for _, object := range objects {
		r.see(object.(*corev1.Pod))
	}
	return len(objects), err
}

func (r *reader) selector(key int) (int, error) {
	pods, err := r.run.lister.List(r.selectors[key])
	return r.seeAll(pods), err
}

func (r *reader) seeAll(pods []*corev1.Pod) int {
	for _, pod := range pods {
		r.see(pod)
	}
	return len(pods)
}

// see reads the name and the version of a pod: their texts, and not only where they are.
func (r *reader) see(pod *corev1.Pod) {
	r.seen += lastByte(pod.Name) + lastByte(pod.ResourceVersion)
}

func lastByte(text string) int {
	if text == "" {
		return 0
	}
	return int(text[len(text)-1])
}
