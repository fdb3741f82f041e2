package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// runLimit ends a run that hangs.
const runLimit = 30 * time.Minute

// nodeIndex is the index that the phase `reads` asks for the pods of a node.
const nodeIndex = "node"

// run is one run of the scenario `informer`.
type run struct {
	options  informerOptions
	server   loadServer
	objects  int
	requests *requestLog
	factory  informers.SharedInformerFactory
	informer cache.SharedIndexInformer
	lister   corelisters.PodLister
	handlers []*handler
}

// runInformer does the phases one after the other. Whatever fails ends the run.
func runInformer(ctx context.Context, options informerOptions) (*informerLine, error) {
	ctx, stopLimit := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("the run took longer than %s", runLimit))
	defer stopLimit()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	r, err := prepare(ctx, options, fail)
	if err != nil {
		return nil, err
	}
	line := &informerLine{
		Driver:   driverName,
		Version:  clientGoVersion(),
		Mode:     options.modeName,
		Handler:  options.handlerName,
		Handlers: options.handlers,
	}
	// The other phases need the cache as well, so this one is always done.
	synced, err := r.sync(ctx)
	if err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	if options.has(phaseSync) {
		line.Sync = synced
	}
	if options.has(phaseRelist) {
		if line.Relist, err = r.relist(ctx); err != nil {
			return nil, fmt.Errorf("relist: %w", err)
		}
	}
	if options.has(phaseEvents) {
		if line.Events, err = r.events(ctx); err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
	}
	if options.has(phaseLatency) {
		if line.Latency, err = r.latency(ctx); err != nil {
			return nil, fmt.Errorf("latency: %w", err)
		}
	}
	if options.has(phaseReads) {
		if line.Reads, err = r.reads(ctx); err != nil {
			return nil, fmt.Errorf("reads: %w", err)
		}
	}
	if err := r.check(ctx); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	line.Check = "ok"
	return line, nil
}

// prepare makes the informer with its handlers, and does not start it.
func prepare(ctx context.Context, options informerOptions, fail context.CancelCauseFunc) (*run, error) {
	if err := options.mode.chooseListing(); err != nil {
		return nil, err
	}
	// What goes wrong comes through the watch error handler; no time is lost with logs.
	klog.SetLogger(logr.Discard())

	server := loadServer{url: options.server}
	before, err := server.state(ctx)
	if err != nil {
		return nil, err
	}
	requests := &requestLog{}
	config := options.mode.restConfig(options.server)
	config.Wrap(requests.wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client-go makes no client for %s: %w", options.server, err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	informer := pods.Informer()
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// The watch may end; a list that fails may not.
		if !errors.Is(err, io.EOF) {
			fail(fmt.Errorf("client-go cannot list or watch: %w", err))
		}
	})
	if err != nil {
		return nil, err
	}
	if options.mode.strip {
		if err := informer.SetTransform(dropManagedFields); err != nil {
			return nil, err
		}
	}
	if options.has(phaseReads) {
		if err := informer.AddIndexers(cache.Indexers{nodeIndex: nodesOf}); err != nil {
			return nil, err
		}
	}
	r := &run{
		options:  options,
		server:   server,
		objects:  before.Objects,
		requests: requests,
		factory:  factory,
		informer: informer,
		lister:   pods.Lister(),
	}
	if r.options.over == 0 {
		r.options.over = r.objects
	}
	for range options.handlers {
		h := newHandler(options.look, before.Objects, fail)
		if _, err := informer.AddEventHandler(h); err != nil {
			return nil, err
		}
		r.handlers = append(r.handlers, h)
	}
	return r, nil
}

// nodesOf is the index function of nodeIndex.
func nodesOf(object any) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("a %T is not a pod", object)
	}
	return []string{pod.Spec.NodeName}, nil
}

// check compares the cache with the server's pods, and the requests with the mode.
func (r *run) check(ctx context.Context) error {
	if err := checkMode(r.options.mode, r.requests.all()); err != nil {
		return err
	}
	expected, err := r.server.state(ctx)
	if err != nil {
		return err
	}
	cached := r.informer.GetStore().List()
	pods := make([]*corev1.Pod, 0, len(cached))
	for _, object := range cached {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("the cache holds a %T", object)
		}
		if r.options.mode.strip == (len(pod.ManagedFields) > 0) {
			return fmt.Errorf("%s/%s has %d managedFields in mode %s", pod.Namespace, pod.Name, len(pod.ManagedFields), r.options.modeName)
		}
		pods = append(pods, pod)
	}
	actual := state{Objects: len(pods), Digest: digest(pods)}
	if actual != expected {
		return fmt.Errorf("the cache has %+v, the server %+v", actual, expected)
	}
	return nil
}

// digest is the sum over all pods of the FNV-1a hash of `namespace/name@version`.
func digest(pods []*corev1.Pod) string {
	var sum uint64
	for _, pod := range pods {
		hash := fnv.New64a()
		io.WriteString(hash, pod.Namespace+"/"+pod.Name+"@"+pod.ResourceVersion)
		sum += hash.Sum64()
	}
	return fmt.Sprintf("%016x", sum)
}
