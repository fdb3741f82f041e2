package main

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leaderChecks = []check{
	{name: "leaders/one-vanishes", run: func(c *cluster) { takeOver(c, false) }},
	{name: "leaders/one-steps-down", run: func(c *cluster) { takeOver(c, true) }},
}

// A candidate for the lease.
type candidate struct {
	leading atomic.Bool
	ended   chan struct{}
	stop    context.CancelFunc
}

func (c *cluster) candidate(name string, release bool) *candidate {
	ctx, stop := context.WithCancel(c)
	candidate := &candidate{ended: make(chan struct{}), stop: stop}
	lock := must(resourcelock.New(resourcelock.LeasesResourceLock, c.namespace, "leader", c.typed.CoreV1(),
		c.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name}))
	elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   2 * time.Second,
		RenewDeadline:   time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { candidate.leading.Store(true) },
			OnStoppedLeading: func() { candidate.leading.Store(false) },
		},
	}))
	go func() {
		defer close(candidate.ended)
		elector.Run(ctx)
	}()
	return candidate
}

func takeOver(c *cluster, release bool) {
	holder := func() string {
		lease := must(c.typed.CoordinationV1().Leases(c.namespace).Get(c, "leader", metav1.GetOptions{}))
		return *lease.Spec.HolderIdentity
	}
	first := c.candidate("first", release)
	defer first.stop()
	c.eventually("the first one leads", first.leading.Load)
	equal("the holder", holder(), "first")
	second := c.candidate("second", release)
	defer second.stop()
	// Some renewals.
	time.Sleep(time.Second)
	equal("the first one still leads", first.leading.Load(), true)
	equal("the second one leads too", second.leading.Load(), false)

	first.stop()
	<-first.ended
	c.eventually("the second one takes over", second.leading.Load)
	equal("the holder at the end", holder(), "second")
	lease := must(c.typed.CoordinationV1().Leases(c.namespace).Get(c, "leader", metav1.GetOptions{}))
	equal("transitions", *lease.Spec.LeaseTransitions >= 1, true)
	equal("it was acquired before it was renewed", lease.Spec.RenewTime.Before(lease.Spec.AcquireTime), false)
	second.stop()
	<-second.ended
}
