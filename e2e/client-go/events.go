package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

var eventChecks = []check{
	{name: "events/counted", run: countedEvents},
	{name: "events/combined", run: combinedEvents},
	{name: "events/series", run: eventSeries},
}

// record starts a recorder of the older kind, which `end` ends.
func (c *cluster) record() (recorder record.EventRecorder, end func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(c))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.typed.CoreV1().Events(c.namespace)})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "e2e"}), broadcaster.Shutdown
}

func (c *cluster) events() []corev1.Event {
	return must(c.typed.CoreV1().Events(c.namespace).List(c, metav1.ListOptions{})).Items
}

func countedEvents(c *cluster) {
	pod := c.createPod("noisy")
	recorder, end := c.record()
	defer end()
	for range 5 {
		recorder.Event(pod, corev1.EventTypeNormal, "Again", "the same as before")
	}
	c.eventually("one event is counted to five", func() bool {
		events := c.events()
		return len(events) == 1 && events[0].Count == 5
	})
	event := c.events()[0]
	equal("its object", event.InvolvedObject.UID, pod.UID)
	equal("its message", event.Message, "the same as before")
	selector := metav1.ListOptions{FieldSelector: "involvedObject.name=noisy,reason=Again"}
	equal("events by their object", len(must(c.typed.CoreV1().Events(c.namespace).List(c, selector)).Items), 1)
}

func combinedEvents(c *cluster) {
	pod := c.createPod("noisy")
	recorder, end := c.record()
	defer end()
	for i := range 15 {
		recorder.Eventf(pod, corev1.EventTypeWarning, "Trouble", "number %d", i)
	}
	// client-go writes nine of a kind, then one for all the others.
	c.eventually("later ones are combined", func() bool {
		events := c.events()
		for _, event := range events {
			if strings.HasPrefix(event.Message, "(combined from similar events): ") {
				return len(events) == 10 && event.Count == 6
			}
		}
		return false
	})
}

func eventSeries(c *cluster) {
	pod := c.createPod("noisy")
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.typed.EventsV1()})
	ok(broadcaster.StartRecordingToSinkWithContext(c))
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/e2e")
	for i := range 3 {
		recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Moving", "Move", "it moves")
		c.eventually(fmt.Sprintf("event %d is there", i), func() bool {
			all := must(c.typed.EventsV1().Events(c.namespace).List(c, metav1.ListOptions{})).Items
			return len(all) == 1 && (i == 0 || all[0].Series != nil && all[0].Series.Count >= 2)
		})
	}
	var event eventsv1.Event = must(c.typed.EventsV1().Events(c.namespace).List(c, metav1.ListOptions{})).Items[0]
	equal("who reports", event.ReportingController, "example.com/e2e")
	// The same object in the other group.
	equal("its message in the core group", c.events()[0].Message, "it moves")
}
