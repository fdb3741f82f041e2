package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var patchChecks = []check{
	{name: "patches/strategic", run: strategicPatches},
	{name: "patches/strategic-computed", run: computedPatch},
	{name: "patches/merge", run: mergePatches},
	{name: "patches/json", run: jsonPatches},
	{name: "patches/status", run: statusPatches},
}

func (c *cluster) patch(kind types.PatchType, text string, subresources ...string) (*appsv1.Deployment, error) {
	return c.typed.AppsV1().Deployments(c.namespace).Patch(c, "web", kind, []byte(text), metav1.PatchOptions{}, subresources...)
}

func strategicPatches(c *cluster) {
	c.createDeployment("web")
	made := must(c.patch(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{
		"containers":[{"name":"side","image":"example.com/side:1"},{"name":"main","env":[{"name":"A","value":"1"}]}]}}}}`))
	containers := made.Spec.Template.Spec.Containers
	equal("containers", len(containers), 2)
	main := containers[0]
	if main.Name != "main" {
		main = containers[1]
	}
	equal("the image", main.Image, "example.com/main:1")
	equal("env", main.Env, []corev1.EnvVar{{Name: "A", Value: "1"}})

	made = must(c.patch(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{
		"$setElementOrder/containers":[{"name":"side"},{"name":"main"}],
		"containers":[{"name":"main","$patch":"delete"}],
		"tolerations":[{"key":"a","operator":"Exists"}]}}}}`))
	equal("containers after $patch", len(made.Spec.Template.Spec.Containers), 1)
	equal("the one that is left", made.Spec.Template.Spec.Containers[0].Name, "side")
	made = must(c.patch(types.StrategicMergePatchType, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`))
	equal("the strategy", made.Spec.Strategy, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})
	made = must(c.patch(types.StrategicMergePatchType, `{"metadata":{"labels":{"app":null,"new":"1"}}}`))
	equal("labels", made.Labels, map[string]string{"new": "1"})
	stale := fmt.Sprintf(`{"metadata":{"resourceVersion":"1","uid":%q}}`, made.UID)
	_, err := c.patch(types.StrategicMergePatchType, stale)
	refused(err, isConflict)
}

// computedPatch is what controllers and `kubectl edit` send.
func computedPatch(c *cluster) {
	old := c.createDeployment("web")
	next := old.DeepCopy()
	next.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "zero", Image: "example.com/zero:1",
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent"}},
		next.Spec.Template.Spec.Containers...)
	next.Spec.Template.Spec.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 81, Protocol: "TCP"}}
	next.Annotations = map[string]string{"note": "computed"}
	patch := must(strategicpatch.CreateTwoWayMergePatch(must(json.Marshal(old)), must(json.Marshal(next)), appsv1.Deployment{}))
	made := must(c.patch(types.StrategicMergePatchType, string(patch)))
	equal("the spec", made.Spec, next.Spec)
	equal("the annotations", made.Annotations, next.Annotations)
}

func mergePatches(c *cluster) {
	c.createDeployment("web")
	made := must(c.patch(types.MergePatchType, `{"metadata":{"labels":{"app":null,"new":"1"}},"spec":{"replicas":3}}`))
	equal("labels", made.Labels, map[string]string{"new": "1"})
	equal("replicas", *made.Spec.Replicas, 3)
	made = must(c.patch(types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"i"}]}}}}`))
	equal("containers", len(made.Spec.Template.Spec.Containers), 1)
	_, err := c.patch(types.MergePatchType, `{"spec":{"replicas":-1}}`)
	refused(err, errors.IsInvalid, "spec.replicas", "must be greater than or equal to 0")
	_, err = c.patch(types.MergePatchType, `{"spec":`)
	refused(err, errors.IsBadRequest)
	_, err = c.typed.AppsV1().Deployments(c.namespace).Patch(c, "absent", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	refused(err, isNotFound)
}

func jsonPatches(c *cluster) {
	c.createDeployment("web")
	made := must(c.patch(types.JSONPatchType, `[
		{"op":"test","path":"/spec/replicas","value":1},
		{"op":"replace","path":"/spec/replicas","value":2},
		{"op":"add","path":"/metadata/labels/a~1b","value":"x"},
		{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"side","image":"example.com/side:1"}}]`))
	equal("replicas", *made.Spec.Replicas, 2)
	equal("the label", made.Labels["a/b"], "x")
	equal("containers", len(made.Spec.Template.Spec.Containers), 2)
	_, err := c.patch(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":1}]`)
	refused(err, errors.IsInvalid)
	_, err = c.patch(types.JSONPatchType, `[{"op":"remove","path":"/metadata/labels/absent"}]`)
	refused(err, errors.IsInvalid)
	_, err = c.patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/selector/matchLabels/app","value":"other"}]`)
	refused(err, errors.IsInvalid)
}

func statusPatches(c *cluster) {
	c.createDeployment("web")
	made := must(c.patch(types.StrategicMergePatchType, `{"spec":{"replicas":9},"status":{"replicas":2,
		"conditions":[{"type":"Progressing","status":"True"}]}}`, "status"))
	equal("replicas of the spec", *made.Spec.Replicas, 1)
	equal("replicas", made.Status.Replicas, 2)
	made = must(c.patch(types.StrategicMergePatchType, `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`, "status"))
	equal("conditions", len(made.Status.Conditions), 2)
	made = must(c.patch(types.JSONPatchType, `[{"op":"remove","path":"/status/conditions/0"}]`, "status"))
	equal("conditions after one is removed", len(made.Status.Conditions), 1)
}
