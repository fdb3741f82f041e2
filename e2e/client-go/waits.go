package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

var waitChecks = []check{
	{name: "waits/condition", run: waitForCondition},
	{name: "waits/deletion", run: waitForDeletion},
	{name: "waits/retry-watcher", run: retryWatcher},
	{name: "waits/watch-ends-in-time", run: watchEnds},
}

// named lists and watches one deployment, as `kubectl wait` and `kubectl rollout status` do.
func (c *cluster) named(name string) cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.typed.AppsV1().RESTClient(), "deployments", c.namespace,
		fields.OneTermEqualSelector("metadata.name", name))
}

func waitForCondition(c *cluster) {
	c.createDeployment("web")
	c.createDeployment("other")
	go func() {
		time.Sleep(200 * time.Millisecond)
		status := `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`
		_, _ = c.patch(types.MergePatchType, status, "status")
	}()
	event := must(watchtools.UntilWithSync(c, c.named("web"), &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		deployment, is := event.Object.(*appsv1.Deployment)
		return is && len(deployment.Status.Conditions) == 1, nil
	}))
	equal("the deployment", event.Object.(*appsv1.Deployment).Name, "web")
}

func waitForDeletion(c *cluster) {
	c.createDeployment("web")
	go func() {
		time.Sleep(200 * time.Millisecond)
		_ = c.typed.AppsV1().Deployments(c.namespace).Delete(c, "web", metav1.DeleteOptions{})
	}()
	event := must(watchtools.UntilWithSync(c, c.named("web"), &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		return event.Type == watch.Deleted, nil
	}))
	equal("the event", event.Type, watch.Deleted)
}

// retryWatcher goes on from a version, through all that came since.
func retryWatcher(c *cluster) {
	made := c.createConfigMap("first", nil)
	c.createConfigMap("second", nil)
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	watcher := must(watchtools.NewRetryWatcherWithContext(c, made.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			// Its watches end after a second each.
			options.TimeoutSeconds = new(int64(1))
			return client.Watch(ctx, options)
		},
	}))
	defer watcher.Stop()
	next := func() string {
		select {
		case event := <-watcher.ResultChan():
			return string(event.Type) + " " + nameOf(event.Object)
		case <-c.Done():
			return "nothing"
		}
	}
	equal("what came before", next(), "ADDED second")
	time.Sleep(1500 * time.Millisecond)
	ok(client.Delete(c, "first", metav1.DeleteOptions{}))
	equal("what came in another watch", next(), "DELETED first")
}

func watchEnds(c *cluster) {
	c.createConfigMap("first", nil)
	watcher := must(c.typed.CoreV1().ConfigMaps(c.namespace).Watch(c, metav1.ListOptions{
		TimeoutSeconds: new(int64(1)), AllowWatchBookmarks: true, SendInitialEvents: new(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}))
	book := &logbook{}
	for event := range watcher.ResultChan() {
		object := event.Object.(*corev1.ConfigMap)
		book.add("%s %s %s", event.Type, object.Name, object.Annotations[metav1.InitialEventsAnnotationKey])
	}
	equal("the first event", book.all()[0], "ADDED first ")
	equal("the second event", book.all()[1], "BOOKMARK  true")
}
