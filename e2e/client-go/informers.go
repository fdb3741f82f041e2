package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

var informerChecks = []check{
	{name: "informers/typed", run: typedInformer},
	{name: "informers/selected", run: selectedInformer},
	{name: "informers/metadata", run: metadataInformer},
}

// recorder writes into a logbook what an informer's handler is told.
func recorder(book *logbook) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { book.add("added %s", nameOf(object)) },
		UpdateFunc: func(_, object any) { book.add("updated %s", nameOf(object)) },
		DeleteFunc: func(object any) { book.add("deleted %s", nameOf(object)) },
	}
}

func nameOf(object any) string {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		return unknown.Key
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return accessor.GetName()
}

func typedInformer(c *cluster) {
	const byImage = "image"
	c.createPod("first")
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(c.namespace))
	pods := factory.Core().V1().Pods()
	ok(pods.Informer().AddIndexers(cache.Indexers{byImage: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.Containers[0].Image}, nil
	}}))
	book := &logbook{}
	must(pods.Informer().AddEventHandler(recorder(book)))
	secrets := factory.Core().V1().Secrets().Lister()
	defer factory.Shutdown()
	ctx, stop := context.WithCancel(c)
	defer stop()
	factory.StartWithContext(ctx)
	for kind, synced := range factory.WaitForCacheSync(c.Done()) {
		equal(fmt.Sprintf("%v synced", kind), synced, true)
	}
	c.tells(book, "added first")

	c.createPod("second")
	client := c.typed.CoreV1().Pods(c.namespace)
	change := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
	must(client.Patch(c, "first", types.MergePatchType, change, metav1.PatchOptions{}))
	ok(client.Delete(c, "second", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	// A pod is marked before it goes, whatever its grace period is.
	c.tells(book, "added first", "added second", "updated first", "updated second", "deleted second")

	found := must(pods.Lister().Pods(c.namespace).List(labels.SelectorFromSet(labels.Set{"changed": "yes"})))
	equal("pods that the lister finds", len(found), 1)
	truth := must(client.Get(c, "first", metav1.GetOptions{}))
	equal("the cached pod", found[0], truth)
	_, err := pods.Lister().Pods(c.namespace).Get("second")
	refused(err, isNotFound)
	indexed := must(pods.Informer().GetIndexer().ByIndex(byImage, "example.com/main:1"))
	equal("pods in the index", len(indexed), 1)
	equal("secrets", len(must(secrets.List(labels.Everything()))), 0)
}

// selectedInformer: what stops to match a selector is gone for the informer.
func selectedInformer(c *cluster) {
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0, informers.WithNamespace(c.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "side=left" }))
	book := &logbook{}
	must(factory.Core().V1().ConfigMaps().Informer().AddEventHandler(recorder(book)))
	defer factory.Shutdown()
	ctx, stop := context.WithCancel(c)
	defer stop()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(c.Done())

	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	c.createConfigMap("other", nil)
	object := newConfigMap("moving", nil)
	object.Labels = map[string]string{"side": "left"}
	must(client.Create(c, object, metav1.CreateOptions{}))
	for _, side := range []string{"right", "left"} {
		change := fmt.Appendf(nil, `{"metadata":{"labels":{"side":%q}}}`, side)
		must(client.Patch(c, "moving", types.StrategicMergePatchType, change, metav1.PatchOptions{}))
	}
	c.tells(book, "added moving", "deleted moving", "added moving")
}

func metadataInformer(c *cluster) {
	object := newConfigMap("first", map[string]string{"not": "shown"})
	object.Annotations = map[string]string{"note": "one"}
	made := must(c.typed.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
	factory := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, c.namespace, nil)
	informer := factory.ForResource(configMaps)
	book := &logbook{}
	must(informer.Informer().AddEventHandler(recorder(book)))
	defer factory.Shutdown()
	ctx, stop := context.WithCancel(c)
	defer stop()
	factory.Start(ctx.Done())
	equal("synced", slices.Collect(maps.Values(factory.WaitForCacheSync(c.Done()))), []bool{true})
	c.tells(book, "added first")

	cached := must(informer.Lister().ByNamespace(c.namespace).Get("first")).(*metav1.PartialObjectMetadata)
	equal("the uid", cached.UID, made.UID)
	equal("the annotations", cached.Annotations, object.Annotations)
	client := c.metadata.Resource(configMaps).Namespace(c.namespace)
	change := []byte(`{"metadata":{"annotations":{"note":"two"}}}`)
	patched := must(client.Patch(c, "first", types.MergePatchType, change, metav1.PatchOptions{}))
	equal("the patched annotation", patched.Annotations["note"], "two")
	equal("the data behind the patch", must(c.getConfigMap("first")).Data["not"], "shown")
	ok(client.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=first"}))
	c.tells(book, "added first", "updated first", "deleted first")
}
