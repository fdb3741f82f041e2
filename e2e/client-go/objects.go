package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

var objectChecks = []check{
	{name: "objects/defaults", run: defaults},
	{name: "objects/errors", run: errorKinds},
	{name: "objects/dry-run", run: dryRun},
	{name: "objects/pages", run: pages},
	{name: "objects/retry-on-conflict", run: retryOnConflict},
	{name: "objects/field-validation", run: fieldValidation},
	{name: "objects/binding-and-eviction", run: bindingAndEviction},
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

	isNotFound = errors.IsNotFound
	isConflict = errors.IsConflict
)

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "e2e"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
}

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func newDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "example.com/main:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				}}},
			},
		},
	}
}

func (c *cluster) createConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return must(c.typed.CoreV1().ConfigMaps(c.namespace).Create(c, newConfigMap(name, data), metav1.CreateOptions{}))
}

func (c *cluster) createPod(name string) *corev1.Pod {
	return must(c.typed.CoreV1().Pods(c.namespace).Create(c, newPod(name), metav1.CreateOptions{}))
}

func (c *cluster) createDeployment(name string) *appsv1.Deployment {
	return must(c.typed.AppsV1().Deployments(c.namespace).Create(c, newDeployment(name), metav1.CreateOptions{}))
}

func (c *cluster) getConfigMap(name string) (*corev1.ConfigMap, error) {
	return c.typed.CoreV1().ConfigMaps(c.namespace).Get(c, name, metav1.GetOptions{})
}

func defaults(c *cluster) {
	deployment := c.createDeployment("web")
	equal("replicas", *deployment.Spec.Replicas, 1)
	equal("strategy", deployment.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	equal("maxSurge", deployment.Spec.Strategy.RollingUpdate.MaxSurge.String(), "25%")
	template := deployment.Spec.Template.Spec
	equal("restartPolicy", template.RestartPolicy, corev1.RestartPolicyAlways)
	equal("imagePullPolicy", template.Containers[0].ImagePullPolicy, corev1.PullIfNotPresent)
	equal("protocol", template.Containers[0].Ports[0].Protocol, corev1.ProtocolTCP)
	equal("generation", deployment.Generation, 1)

	deployment.Spec.Replicas = new(int32(3))
	deployment.Status.Replicas = 7
	updated := must(c.typed.AppsV1().Deployments(c.namespace).Update(c, deployment, metav1.UpdateOptions{}))
	equal("generation after a change", updated.Generation, 2)
	equal("status after an update of the spec", updated.Status.Replicas, 0)
	updated.Status.Replicas = 7
	updated.Spec.Replicas = new(int32(9))
	updated = must(c.typed.AppsV1().Deployments(c.namespace).UpdateStatus(c, updated, metav1.UpdateOptions{}))
	equal("status", updated.Status.Replicas, 7)
	equal("replicas after an update of the status", *updated.Spec.Replicas, 3)
	equal("generation after an update of the status", updated.Generation, 2)
}

func errorKinds(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	made := c.createConfigMap("one", nil)
	_, err := client.Create(c, newConfigMap("one", nil), metav1.CreateOptions{})
	refused(err, errors.IsAlreadyExists, `configmaps "one" already exists`)
	_, err = client.Get(c, "two", metav1.GetOptions{})
	refused(err, errors.IsNotFound, `configmaps "two" not found`)
	_, err = client.Create(c, newConfigMap("No_Name", nil), metav1.CreateOptions{})
	refused(err, errors.IsInvalid, "metadata.name", "RFC 1123")
	_, err = c.typed.CoreV1().ConfigMaps("not-there").Create(c, newConfigMap("one", nil), metav1.CreateOptions{})
	refused(err, errors.IsNotFound, `namespaces "not-there" not found`)
	_, err = c.typed.CoreV1().Pods(c.namespace).Create(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	refused(err, errors.IsInvalid, "spec.containers")

	first := made.DeepCopy()
	made.Data = map[string]string{"a": "1"}
	must(client.Update(c, made, metav1.UpdateOptions{}))
	first.Data = map[string]string{"a": "2"}
	_, err = client.Update(c, first, metav1.UpdateOptions{})
	refused(err, errors.IsConflict, "the object has been modified; please apply your changes to the latest version and try again")
}

func dryRun(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	dry := []string{metav1.DryRunAll}
	made := must(client.Create(c, newConfigMap("dry", nil), metav1.CreateOptions{DryRun: dry}))
	equal("the uid is there", made.UID != "", true)
	_, err := c.getConfigMap("dry")
	refused(err, isNotFound)
	c.createConfigMap("wet", nil)
	ok(client.Delete(c, "wet", metav1.DeleteOptions{DryRun: dry}))
	must(c.getConfigMap("wet"))
}

func pages(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	var made, seen []string
	for i := range 25 {
		made = append(made, c.createConfigMap(fmt.Sprintf("page-%02d", i), nil).Name)
	}
	first := must(client.List(c, metav1.ListOptions{Limit: 10}))
	equal("items of a page", len(first.Items), 10)
	equal("items behind it", *first.RemainingItemCount, 15)

	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	})
	pages.PageSize = 7
	ok(pages.EachListItem(c, metav1.ListOptions{LabelSelector: "!absent", FieldSelector: "metadata.name!=page-03"},
		func(object runtime.Object) error {
			seen = append(seen, object.(*corev1.ConfigMap).Name)
			return nil
		}))
	equal("all pages", seen, slices.DeleteFunc(made, func(name string) bool { return name == "page-03" }))
}

func retryOnConflict(c *cluster) {
	const writers, times = 4, 5
	c.createConfigMap("counter", map[string]string{"n": "0"})
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	patient := retry.DefaultBackoff
	patient.Steps = 50
	patient.Factor = 1
	problems := make(chan error, writers*times)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range times {
				problems <- retry.RetryOnConflict(patient, func() error {
					object, err := client.Get(c, "counter", metav1.GetOptions{})
					if err != nil {
						return err
					}
					var n int
					fmt.Sscan(object.Data["n"], &n)
					object.Data["n"] = fmt.Sprint(n + 1)
					_, err = client.Update(c, object, metav1.UpdateOptions{})
					return err
				})
			}
		})
	}
	group.Wait()
	close(problems)
	for problem := range problems {
		ok(problem)
	}
	equal("the counter", must(c.getConfigMap("counter")).Data["n"], fmt.Sprint(writers*times))
}

// A warner keeps the warnings of the server.
type warner struct{ logbook }

func (w *warner) HandleWarningHeader(code int, _ string, text string) { w.add("%d %s", code, text) }

func fieldValidation(c *cluster) {
	warnings := &warner{}
	config := rest.CopyConfig(c.config)
	config.WarningHandler = warnings
	client := must(dynamic.NewForConfig(config)).Resource(deployments).Namespace(c.namespace)
	object := &unstructured.Unstructured{Object: must(runtime.DefaultUnstructuredConverter.ToUnstructured(newDeployment("web")))}
	object.SetAPIVersion("apps/v1")
	object.SetKind("Deployment")
	unstructured.RemoveNestedField(object.Object, "status")
	ok(unstructured.SetNestedField(object.Object, "x", "spec", "replica"))

	_, err := client.Create(c, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	refused(err, errors.IsBadRequest, `strict decoding error: unknown field "spec.replica"`)
	made := must(client.Create(c, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationWarn}))
	equal("warnings", warnings.all(), []string{`299 unknown field "spec.replica"`})
	_, found, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "replica")
	equal("the unknown field is kept", found, false)

	ok(unstructured.SetNestedField(object.Object, "three", "spec", "replicas"))
	object.SetName("other")
	_, err = client.Create(c, object, metav1.CreateOptions{})
	refused(err, errors.IsBadRequest, "cannot be handled as a Deployment")
}

func bindingAndEviction(c *cluster) {
	pods := c.typed.CoreV1().Pods(c.namespace)
	c.createPod("bound")
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}
	ok(pods.Bind(c, binding, metav1.CreateOptions{}))
	equal("the node", must(pods.Get(c, "bound", metav1.GetOptions{})).Spec.NodeName, "node-1")
	refused(pods.Bind(c, binding, metav1.CreateOptions{}), isConflict, "already assigned to node")

	ok(pods.EvictV1(c, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "bound"}}))
	evicted := must(pods.Get(c, "bound", metav1.GetOptions{}))
	equal("the evicted pod ends", evicted.DeletionTimestamp != nil, true)
	ok(pods.Delete(c, "bound", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	c.gone("the pod", func() error { _, err := pods.Get(c, "bound", metav1.GetOptions{}); return err })
}
