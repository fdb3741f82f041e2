package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTheDigestIsASumOfHashes(t *testing.T) {
	// FNV-1a, 64 bits, of `default/a@1` and of `default/b@2`, reckoned elsewhere.
	a, b := pod("a", "1"), pod("b", "2")
	for _, test := range []struct {
		pods     []*corev1.Pod
		expected string
	}{
		{nil, "0000000000000000"},
		{[]*corev1.Pod{a}, "01b7e407cceb4539"},
		{[]*corev1.Pod{b, a}, "f9132e0f937cc29a"},
	} {
		if actual := digest(test.pods); actual != test.expected {
			t.Errorf("the digest of %d pods is %s, not %s", len(test.pods), actual, test.expected)
		}
	}
}

func TestMemoryIsReadInBytes(t *testing.T) {
	read, err := parseMemory([]byte("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t       1 kB\n"))
	if err != nil || read != (memory{now: 1024, peak: 2 << 20}) {
		t.Errorf("memory is %+v, %v", read, err)
	}
	if _, err := parseMemory([]byte("VmRSS:\t1 kB\n")); err == nil {
		t.Error("no peak is missed")
	}
}

func TestKeysAreReadLineByLine(t *testing.T) {
	keys, err := parseKeys("ns/a node-1 web\nns/b node-2 db\n")
	if err != nil || len(keys) != 2 || keys[1] != (readKey{namespace: "ns", name: "b", node: "node-2", app: "db"}) {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
	for _, lines := range []string{"", "ns/a node-1\n", "a node-1 web\n"} {
		if keys, err := parseKeys(lines); err == nil {
			t.Errorf("%q was taken for %+v", lines, keys)
		}
	}
}

func TestEventsAreAskedForBySpan(t *testing.T) {
	for _, test := range []struct {
		count    int
		took     time.Duration
		expected int
	}{
		{1_000, busySpan, 1_000},
		{1_000, busySpan / 10, 10_000},
		{1_000, 100 * busySpan, 100},
		{1_000_000, busySpan / 2, 1_000_000},
	} {
		if actual := nextCount(test.count, test.took); actual != test.expected {
			t.Errorf("behind %d in %s come %d, not %d", test.count, test.took, actual, test.expected)
		}
	}
}

func TestWorkThatIsLeftCountsAsCPUTimeOnly(t *testing.T) {
	const left = 60 * time.Millisecond
	watch, err := startStopwatch()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for until := watch.cpu + left; ; {
			if used, err := cpuTime(); err != nil || used > until {
				return
			}
		}
	}()
	total, err := watch.stopAtRest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if total.cpu < left {
		t.Errorf("%s of CPU time were counted, of more than %s", total.cpu, left)
	}
	if total.wall <= 0 || total.wall > time.Since(watch.started)-restQuiet {
		t.Errorf("the wall time is %s: it must end before the wait for rest", total.wall)
	}
}
