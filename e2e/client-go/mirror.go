package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// versions are those of objects, by name.
type versions map[string]string

// A folded view is what a handler makes of all that it is told.
type foldedView struct {
	sync.Mutex
	versions versions
	told     atomic.Int64
	problem  string
}

func (v *foldedView) set(object any, isNew bool) {
	v.Lock()
	defer v.Unlock()
	v.told.Add(1)
	name := nameOf(object)
	if _, known := v.versions[name]; known == isNew {
		v.problem = fmt.Sprintf("%s was told of as new: %v, but known: %v", name, isNew, known)
	}
	v.versions[name] = versionOf(object)
}

func (v *foldedView) remove(object any) {
	v.Lock()
	defer v.Unlock()
	v.told.Add(1)
	name := nameOf(object)
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		name = nameOf(unknown.Obj)
	}
	if _, known := v.versions[name]; !known {
		v.problem = fmt.Sprintf("%s is deleted, and was not known", name)
	}
	delete(v.versions, name)
}

func (v *foldedView) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { v.set(object, true) },
		UpdateFunc: func(_, object any) { v.set(object, false) },
		DeleteFunc: v.remove,
	}
}

func versionOf(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return accessor.GetResourceVersion()
}

func versionsOf[T any](objects []T) versions {
	all := versions{}
	for _, object := range objects {
		all[nameOf(object)] = versionOf(object)
	}
	return all
}

// A mirrored kind has an informer, what its handler was told, and a way to ask the server.
type mirroredKind struct {
	name     string
	informer cache.SharedIndexInformer
	view     *foldedView
	list     func() (runtime.Object, error)
}

// difference says in what the three differ: the server, the informer's cache and the handler's view.
func (k *mirroredKind) difference() (string, int) {
	listed, err := k.list()
	if err != nil {
		return err.Error(), 0
	}
	objects, err := meta.ExtractList(listed)
	if err != nil {
		return err.Error(), 0
	}
	server, cached := versionsOf(objects), versionsOf(k.informer.GetStore().List())
	k.view.Lock()
	defer k.view.Unlock()
	switch {
	case k.view.problem != "":
		return k.view.problem, 0
	case !maps.Equal(server, cached):
		return fmt.Sprintf("the server has %v, the cache %v", server, cached), 0
	case !maps.Equal(cached, k.view.versions):
		return fmt.Sprintf("the cache has %v, the handler's view %v", cached, k.view.versions), 0
	}
	return "", len(server)
}

// mirror keeps informers of a namespace running until the standard input ends. Then server, caches and handlers' views must soon be
// the same.
func mirror(config *rest.Config, namespace string) bool {
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	defer factory.Shutdown()
	defer stop()
	core := factory.Core().V1()
	all := metav1.ListOptions{}
	kinds := []*mirroredKind{
		{name: "configmaps", informer: core.ConfigMaps().Informer(), list: func() (runtime.Object, error) {
			return client.CoreV1().ConfigMaps(namespace).List(ctx, all)
		}},
		{name: "secrets", informer: core.Secrets().Informer(), list: func() (runtime.Object, error) {
			return client.CoreV1().Secrets(namespace).List(ctx, all)
		}},
	}
	for _, kind := range kinds {
		kind.view = &foldedView{versions: versions{}}
		if _, err := kind.informer.AddEventHandler(kind.view.handler()); err != nil {
			fmt.Println("FAILED mirror:", err)
			return false
		}
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	fmt.Println("mirroring")
	_, _ = io.Copy(io.Discard, os.Stdin)

	passed := true
	deadline := time.Now().Add(patience)
	for _, kind := range kinds {
		difference, count := kind.difference()
		for difference != "" && time.Now().Before(deadline) {
			time.Sleep(100 * time.Millisecond)
			difference, count = kind.difference()
		}
		if difference != "" {
			fmt.Printf("FAILED mirror of %s: %s\n", kind.name, difference)
			passed = false
		} else {
			fmt.Printf("ok mirror of %s: %d objects, %d calls of the handler\n", kind.name, count, kind.view.told.Load())
		}
	}
	return passed
}
