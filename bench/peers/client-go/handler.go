package main

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// look is what a handler does with the pod of an event. The number it returns depends on all that it read, so that none of
// the reading can be left out by the compiler.
type look func(pod *corev1.Pod) (int, error)

// lookFor finds what a handler of this name does.
func lookFor(handler string) (look, error) {
	switch handler {
	case "keys":
		return lookAtKey, nil
	case "decode":
		return lookAtFields, nil
	default:
		return nil, fmt.Errorf("there is no handler %q for client-go: try keys or decode", handler)
	}
}

// lookAtKey takes what a controller takes before it puts the object into its work queue.
func lookAtKey(pod *corev1.Pod) (int, error) {
	key, err := cache.MetaNamespaceKeyFunc(pod)
	return len(key) + len(pod.ResourceVersion), err
}

// lookAtFields reads a few fields of a pod, which client-go has decoded in any case.
func lookAtFields(pod *corev1.Pod) (int, error) {
	seen := len(pod.Namespace) + len(pod.Name) + len(pod.ResourceVersion) + len(pod.Spec.NodeName)
	seen += len(pod.Status.Phase) + len(pod.Status.PodIP) + len(pod.Spec.Containers)
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Ready {
			seen++
		}
	}
	return seen, nil
}

// handler is one event handler of the informer. Its methods On.. are called by one goroutine of the informer.
type handler struct {
	look look
	// fail ends the run.
	fail context.CancelCauseFunc

	// expected is how many pods there are; synced is closed when the handler was told of that many.
	expected, added int
	synced          chan struct{}

	// changes counts the events behind the first list; heard is the version of the last of them.
	changes, heard atomic.Uint64
	// awaited is the version that somebody waits for; reached wakes them.
	awaited atomic.Uint64
	reached chan struct{}
	// arrivals, if set, notes when events come.
	arrivals atomic.Pointer[arrivals]

	seen int
}

// noVersion is awaited while nobody waits.
const noVersion = math.MaxUint64

func newHandler(look look, expected int, fail context.CancelCauseFunc) *handler {
	h := &handler{look: look, fail: fail, expected: expected, synced: make(chan struct{}), reached: make(chan struct{}, 1)}
	h.awaited.Store(noVersion)
	return h
}

func (h *handler) OnAdd(object any, _ bool) {
	if h.see(object) == nil {
		return
	}
	h.added++
	if h.added == h.expected {
		close(h.synced)
	}
}

func (h *handler) OnUpdate(_, object any) {
	arrivals := h.arrivals.Load()
	var now int64
	if arrivals != nil {
		now = time.Now().UnixNano()
	}
	pod := h.see(object)
	if pod == nil {
		return
	}
	version, err := parseVersion(pod.ResourceVersion)
	if err != nil {
		h.fail(err)
		return
	}
	if arrivals != nil {
		arrivals.note(version, now)
	}
	h.changes.Add(1)
	// First said, then looked whether somebody waits: whoever waits does it the other way round, so none is missed.
	h.heard.Store(version)
	if version >= h.awaited.Load() {
		select {
		case h.reached <- struct{}{}:
		default:
		}
	}
}

// OnDelete fails: the load server never deletes a pod.
func (h *handler) OnDelete(object any) {
	h.fail(fmt.Errorf("the informer told of a deleted pod, of which there are none: %T", object))
}

func (h *handler) see(object any) *corev1.Pod {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		h.fail(fmt.Errorf("the informer told of a %T, which is not a pod", object))
		return nil
	}
	seen, err := h.look(pod)
	if err != nil {
		h.fail(err)
		return nil
	}
	h.seen += seen
	return pod
}

// await waits until the handler has heard of this version. Only one may wait at a time.
func (h *handler) await(ctx context.Context, version uint64) error {
	h.awaited.Store(version)
	defer h.awaited.Store(noVersion)
	for h.heard.Load() < version {
		select {
		case <-h.reached:
		case <-ctx.Done():
			return fmt.Errorf("version %d was not heard, the last was %d: %w", version, h.heard.Load(), context.Cause(ctx))
		}
	}
	return nil
}

// arrivals is when the events came, by version.
type arrivals struct {
	versions []uint64
	times    []int64
}

func newArrivals(count int) *arrivals {
	return &arrivals{versions: make([]uint64, 0, count), times: make([]int64, 0, count)}
}

func (a *arrivals) note(version uint64, now int64) {
	a.versions = append(a.versions, version)
	a.times = append(a.times, now)
}

// delays is how long each of these events took from the server's write to the handler's call, in nanoseconds.
func (a *arrivals) delays(events versions, sent []int64) ([]int64, error) {
	delays := make([]int64, 0, len(sent))
	for i, version := range a.versions {
		if version < events.first || version > events.last {
			return nil, fmt.Errorf("version %d came, which is none of %d to %d", version, events.first, events.last)
		}
		delays = append(delays, a.times[i]-sent[version-events.first])
	}
	if len(delays) != len(sent) {
		return nil, fmt.Errorf("%d events came, not %d", len(delays), len(sent))
	}
	return delays, nil
}
