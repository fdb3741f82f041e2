package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: version}}
}

func TestWhoWaitsIsWokenByTheVersion(t *testing.T) {
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	h := newHandler(lookAtKey, 1, fail)
	go func() {
		for version := range 1_000 {
			h.OnUpdate(nil, pod("a", fmt.Sprint(version+1)))
		}
	}()
	for _, version := range []uint64{1, 500, 1_000, 7} {
		if err := h.await(ctx, version); err != nil {
			t.Fatal(err)
		}
		if heard := h.heard.Load(); heard < version {
			t.Errorf("woken at version %d, waiting for %d", heard, version)
		}
	}
	if changes := h.changes.Load(); changes != 1_000 {
		t.Errorf("%d changes were counted, not 1000", changes)
	}
}

func TestAHandlerIsSyncedWhenItKnowsAllPods(t *testing.T) {
	h := newHandler(lookAtFields, 2, func(err error) { t.Error(err) })
	h.OnAdd(pod("a", "1"), true)
	select {
	case <-h.synced:
		t.Error("synced after one pod of two")
	default:
	}
	h.OnAdd(pod("b", "2"), true)
	<-h.synced
}

func TestWhatCannotBeEndsTheRun(t *testing.T) {
	for about, tell := range map[string]func(*handler){
		"deleted":       func(h *handler) { h.OnDelete(pod("a", "1")) },
		"not a pod":     func(h *handler) { h.OnAdd(&corev1.Node{}, false) },
		"not a decimal": func(h *handler) { h.OnUpdate(nil, pod("a", "x")) },
	} {
		ctx, fail := context.WithCancelCause(context.Background())
		tell(newHandler(lookAtKey, 5, fail))
		if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: the run ended with %v", about, err)
		}
		fail(nil)
	}
}

func TestDelaysAreOfTheEventsThatWereSent(t *testing.T) {
	came := newArrivals(2)
	came.note(8, 170)
	came.note(7, 150)
	delays, err := came.delays(versions{first: 7, last: 8}, []int64{100, 110})
	if err != nil || len(delays) != 2 || delays[0] != 60 || delays[1] != 50 {
		t.Errorf("the delays are %v, %v", delays, err)
	}
	if _, err := came.delays(versions{first: 7, last: 9}, []int64{100, 110, 120}); err == nil {
		t.Error("an event that never came is not missed")
	}
	if _, err := came.delays(versions{first: 8, last: 9}, []int64{100, 110}); err == nil {
		t.Error("an event that was not sent is not noticed")
	}
}

func TestPercentilesAreValuesThatWereMeasured(t *testing.T) {
	var sorted []int64
	for i := range 200 {
		sorted = append(sorted, int64(i+1))
	}
	for percent, expected := range map[int]time.Duration{50: 100, 99: 198, 100: 200} {
		if actual := percentile(sorted, percent); actual != expected {
			t.Errorf("percentile %d is %d, not %d", percent, actual, expected)
		}
	}
	if one := percentile(sorted[:1], 1); one != 1 {
		t.Errorf("the percentile of one value is %d", one)
	}
}
