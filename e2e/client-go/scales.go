package main

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	autoscalingapply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

var scaleChecks = []check{
	{name: "scales/typed", run: typedScale},
	{name: "scales/any-kind", run: anyScale},
}

func typedScale(c *cluster) {
	made := c.createDeployment("web")
	client := c.typed.AppsV1().Deployments(c.namespace)
	current := must(client.GetScale(c, "web", metav1.GetOptions{}))
	equal("replicas", current.Spec.Replicas, 1)
	equal("the selector", current.Status.Selector, "app=web")
	equal("the uid", current.UID, made.UID)
	equal("the version", current.ResourceVersion, made.ResourceVersion)
	current.Spec.Replicas = 5
	current = must(client.UpdateScale(c, "web", current, metav1.UpdateOptions{}))
	equal("replicas after an update", current.Spec.Replicas, 5)
	deployment := must(client.Get(c, "web", metav1.GetOptions{}))
	equal("replicas of the deployment", *deployment.Spec.Replicas, 5)
	equal("its generation", deployment.Generation, 2)

	stale := &autoscalingv1.Scale{ObjectMeta: *made.ObjectMeta.DeepCopy(), Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	_, err := client.UpdateScale(c, "web", stale, metav1.UpdateOptions{})
	refused(err, isConflict)
	stale.ResourceVersion = ""
	stale.Spec.Replicas = -1
	_, err = client.UpdateScale(c, "web", stale, metav1.UpdateOptions{})
	refused(err, errors.IsInvalid, "spec.replicas")

	applied := autoscalingapply.Scale().WithSpec(autoscalingapply.ScaleSpec().WithReplicas(6))
	current = must(client.ApplyScale(c, "web", applied, force("scaler")))
	equal("replicas after an apply", current.Spec.Replicas, 6)
}

// anyScale is how the horizontal autoscaler does it.
func anyScale(c *cluster) {
	c.createDeployment("web")
	group, sails := c.defineSails()
	must(sails.Create(c, newSail(group, "main"), metav1.CreateOptions{}))
	discovery := memory.NewMemCacheClient(c.typed.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	client := must(scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery)))
	scales := client.Scales(c.namespace)

	current := must(scales.Get(c, deployments.GroupResource(), "web", metav1.GetOptions{}))
	current.Spec.Replicas = 3
	current = must(scales.Update(c, deployments.GroupResource(), current, metav1.UpdateOptions{}))
	equal("replicas", current.Spec.Replicas, 3)
	current = must(scales.Patch(c, deployments, "web", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}))
	equal("replicas after a patch", current.Spec.Replicas, 4)

	kind := definitions.GroupResource()
	kind.Group, kind.Resource = group, "sails"
	// Discovery may know the new kind a little later.
	c.eventually("the custom scale is found", func() bool {
		discovery.Invalidate()
		mapper.Reset()
		_, err := scales.Get(c, kind, "main", metav1.GetOptions{})
		return err == nil
	})
	reefs := must(scales.Get(c, kind, "main", metav1.GetOptions{}))
	equal("replicas of a custom object", reefs.Spec.Replicas, 2)
	c.forgetSails(group)
}
