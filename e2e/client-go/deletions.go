package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var deletionChecks = []check{
	{name: "deletions/background", run: deleteBackground, needsControllers: true},
	{name: "deletions/foreground", run: deleteForeground, needsControllers: true},
	{name: "deletions/orphan", run: deleteOrphan, needsControllers: true},
	{name: "deletions/absent-owner", run: absentOwner, needsControllers: true},
	{name: "deletions/finalizers", run: finalizers},
	{name: "deletions/foreground-begins", run: foregroundBegins},
	{name: "deletions/grace", run: grace},
	{name: "deletions/preconditions", run: preconditions},
	{name: "deletions/collection", run: deleteCollection},
	{name: "deletions/namespace", run: deleteNamespace},
}

// family makes an owner, a child of it and a grandchild: config maps, so that nothing else has an opinion on them.
func (c *cluster) family(blocking bool) {
	owner := c.createConfigMap("owner", nil)
	for _, name := range []string{"child", "grandchild"} {
		object := newConfigMap(name, nil)
		object.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocking,
		}}
		owner = must(c.typed.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
	}
}

func (c *cluster) deleteConfigMap(name string, policy metav1.DeletionPropagation) {
	ok(c.typed.CoreV1().ConfigMaps(c.namespace).Delete(c, name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

func (c *cluster) configMapGone(name string) {
	c.gone(name, func() error { _, err := c.getConfigMap(name); return err })
}

func deleteBackground(c *cluster) {
	c.family(false)
	c.deleteConfigMap("owner", metav1.DeletePropagationBackground)
	_, err := c.getConfigMap("owner")
	refused(err, isNotFound)
	c.configMapGone("child")
	c.configMapGone("grandchild")
}

func deleteForeground(c *cluster) {
	c.family(true)
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	hold := func(finalizers string) {
		must(client.Patch(c, "child", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}))
	}
	hold(`["example.com/hold"]`)
	c.deleteConfigMap("owner", metav1.DeletePropagationForeground)
	c.eventually("the child is being deleted", func() bool {
		return must(c.getConfigMap("child")).DeletionTimestamp != nil
	})
	owner := must(c.getConfigMap("owner"))
	equal("the owner's finalizers", owner.Finalizers, []string{metav1.FinalizerDeleteDependents})
	equal("the owner waits", owner.DeletionTimestamp != nil, true)
	c.configMapGone("grandchild")
	must(c.getConfigMap("owner"))
	hold(`null`)
	c.configMapGone("child")
	c.configMapGone("owner")
}

func deleteOrphan(c *cluster) {
	c.family(true)
	c.deleteConfigMap("owner", metav1.DeletePropagationOrphan)
	c.configMapGone("owner")
	c.eventually("the child has no owner", func() bool { return len(must(c.getConfigMap("child")).OwnerReferences) == 0 })
	equal("the grandchild's owners", len(must(c.getConfigMap("grandchild")).OwnerReferences), 1)
}

// absentOwner: whose owner never was is garbage from the beginning.
func absentOwner(c *cluster) {
	object := newConfigMap("child", nil)
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "not-there"}}
	must(c.typed.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
	c.configMapGone("child")
}

func finalizers(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	object := newConfigMap("held", nil)
	object.Finalizers = []string{"example.com/hold"}
	must(client.Create(c, object, metav1.CreateOptions{}))
	ok(client.Delete(c, "held", metav1.DeleteOptions{}))
	held := must(c.getConfigMap("held"))
	equal("it is being deleted", held.DeletionTimestamp != nil, true)
	held.Finalizers = append(held.Finalizers, "example.com/late")
	_, err := client.Update(c, held, metav1.UpdateOptions{})
	refused(err, errors.IsInvalid, "no new finalizers can be added if the object is being deleted")
	held.Finalizers = nil
	must(client.Update(c, held, metav1.UpdateOptions{}))
	_, err = c.getConfigMap("held")
	refused(err, isNotFound)
}

// foregroundBegins is what the server does before any controller: it puts a finalizer there.
func foregroundBegins(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	object := newConfigMap("held", nil)
	object.Finalizers = []string{"example.com/hold"}
	must(client.Create(c, object, metav1.CreateOptions{}))
	c.deleteConfigMap("held", metav1.DeletePropagationForeground)
	held := must(c.getConfigMap("held"))
	equal("the first finalizer", held.Finalizers[0], "example.com/hold")
	if !c.controllers {
		equal("finalizers", held.Finalizers, []string{"example.com/hold", metav1.FinalizerDeleteDependents})
	}
	equal("the grace period", *held.DeletionGracePeriodSeconds, 0)
	must(client.Patch(c, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	c.configMapGone("held")
}

func grace(c *cluster) {
	client := c.typed.CoreV1().Pods(c.namespace)
	pod := newPod("running")
	pod.Spec.NodeName = "node-1"
	must(client.Create(c, pod, metav1.CreateOptions{}))
	ok(client.Delete(c, "running", metav1.DeleteOptions{GracePeriodSeconds: new(int64(20))}))
	running := must(client.Get(c, "running", metav1.GetOptions{}))
	equal("the grace period", *running.DeletionGracePeriodSeconds, 20)
	ok(client.Delete(c, "running", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	_, err := client.Get(c, "running", metav1.GetOptions{})
	refused(err, isNotFound)
}

func preconditions(c *cluster) {
	made := c.createConfigMap("one", nil)
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	other := types.UID("other")
	err := client.Delete(c, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	refused(err, isConflict, "the UID in the precondition (other) does not match the UID in record")
	err = client.Delete(c, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}})
	refused(err, isConflict, "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record")
	ok(client.Delete(c, "one", *metav1.NewPreconditionDeleteOptions(string(made.UID))))
}

func deleteCollection(c *cluster) {
	for _, name := range []string{"left", "right"} {
		object := newConfigMap(name, nil)
		object.Labels = map[string]string{"side": name}
		must(c.typed.CoreV1().ConfigMaps(c.namespace).Create(c, object, metav1.CreateOptions{}))
	}
	ok(c.typed.CoreV1().ConfigMaps(c.namespace).DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "side=left"}))
	c.configMapGone("left")
	must(c.getConfigMap("right"))
}

func deleteNamespace(c *cluster) {
	namespaces := c.typed.CoreV1().Namespaces()
	name := c.namespace + "-b"
	made := must(namespaces.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	equal("the phase", made.Status.Phase, corev1.NamespaceActive)
	equal("its own label", made.Labels, map[string]string{"kubernetes.io/metadata.name": name})
	equal("the finalizers", made.Spec.Finalizers, []corev1.FinalizerName{corev1.FinalizerKubernetes})
	client := c.typed.CoreV1().ConfigMaps(name)
	held := newConfigMap("held", nil)
	held.Finalizers = []string{"example.com/hold"}
	must(client.Create(c, held, metav1.CreateOptions{}))
	must(client.Create(c, newConfigMap("free", nil), metav1.CreateOptions{}))

	ok(namespaces.Delete(c, name, metav1.DeleteOptions{}))
	equal("the phase of a deleted one", must(namespaces.Get(c, name, metav1.GetOptions{})).Status.Phase, corev1.NamespaceTerminating)
	_, err := client.Create(c, newConfigMap("late", nil), metav1.CreateOptions{})
	refused(err, errors.IsForbidden, "because it is being terminated")
	equal("the cause", errors.HasStatusCause(err, corev1.NamespaceTerminatingCause), true)
	if c.controllers {
		c.gone("what is in it", func() error { _, err := client.Get(c, "free", metav1.GetOptions{}); return err })
	}
	must(client.Patch(c, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	if !c.controllers {
		ok(client.DeleteCollection(c, metav1.DeleteOptions{}, metav1.ListOptions{}))
		must(namespaces.Finalize(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{}))
	}
	c.gone("the namespace", func() error { _, err := namespaces.Get(c, name, metav1.GetOptions{}); return err })
}
