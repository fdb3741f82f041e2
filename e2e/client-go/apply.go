package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

var applyChecks = []check{
	{name: "apply/deployment", run: applyDeployment},
	{name: "apply/conflict-and-force", run: applyConflict},
	{name: "apply/config-map", run: applyConfigMap},
	{name: "apply/lists-are-shared", run: applyShared},
	{name: "apply/extract", run: applyExtract},
	{name: "apply/status", run: applyStatus},
	{name: "apply/after-update", run: applyAfterUpdate},
	{name: "apply/custom", run: applyCustom},
}

// as is the one who applies; force takes fields from others.
func as(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
func force(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager, Force: true}
}

// webApply is the least that a deployment needs.
func webApply(c *cluster) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	container := coreapply.Container().WithName("main").WithImage("example.com/main:1")
	return appsapply.Deployment("web", c.namespace).WithLabels(labels).WithSpec(appsapply.DeploymentSpec().
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(container))))
}

// managersOf are who owns fields, each with how: "a Apply", "b Update".
func managersOf(object metav1.Object) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		line := entry.Manager + " " + string(entry.Operation)
		if entry.Subresource != "" {
			line += " " + entry.Subresource
		}
		managers = append(managers, line)
	}
	slices.Sort(managers)
	return managers
}

func applyDeployment(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	made := must(client.Apply(c, webApply(c), as("a")))
	equal("a default", *made.Spec.Replicas, 1)
	equal("the managers", managersOf(made), []string{"a Apply"})
	again := must(client.Apply(c, webApply(c), as("a")))
	equal("the version after the same", again.ResourceVersion, made.ResourceVersion)

	wider := webApply(c)
	wider.Spec.WithReplicas(4)
	wider.Spec.Template.Spec.Containers[0].WithEnv(coreapply.EnvVar().WithName("A").WithValue("1"))
	made = must(client.Apply(c, wider, as("a")))
	equal("replicas", *made.Spec.Replicas, 4)
	equal("the generation", made.Generation, 2)
	made = must(client.Apply(c, webApply(c), as("a")))
	equal("replicas that nobody wants", *made.Spec.Replicas, 1)
	equal("env that nobody wants", len(made.Spec.Template.Spec.Containers[0].Env), 0)
}

func applyConflict(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	first := webApply(c)
	first.Spec.WithReplicas(1)
	must(client.Apply(c, first, as("a")))
	second := appsapply.Deployment("web", c.namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(2))
	_, err := client.Apply(c, second, as("b"))
	refused(err, isConflict, "Apply failed with 1 conflict", `conflict with "a": .spec.replicas`)
	causes := err.(errors.APIStatus).Status().Details.Causes
	equal("causes", len(causes), 1)
	equal("the field", causes[0].Field, ".spec.replicas")
	equal("the cause", causes[0].Type, metav1.CauseTypeFieldManagerConflict)

	made := must(client.Apply(c, second, force("b")))
	equal("replicas by force", *made.Spec.Replicas, 2)
	equal("the managers", managersOf(made), []string{"a Apply", "b Apply"})
	_, err = client.Apply(c, first, as("a"))
	refused(err, isConflict, `conflict with "b": .spec.replicas`)
	made = must(client.Apply(c, webApply(c), as("a")))
	equal("replicas that the other owns", *made.Spec.Replicas, 2)
	// Two may own a field if they want the same.
	first.Spec.WithReplicas(2)
	must(client.Apply(c, first, as("a")))
}

func applyConfigMap(c *cluster) {
	client := c.typed.CoreV1().ConfigMaps(c.namespace)
	config := func(data map[string]string) *coreapply.ConfigMapApplyConfiguration {
		return coreapply.ConfigMap("settings", c.namespace).WithData(data)
	}
	must(client.Apply(c, config(map[string]string{"a": "1", "both": "x"}), as("a")))
	must(client.Apply(c, config(map[string]string{"b": "1", "both": "x"}), as("b")))
	made := must(client.Apply(c, config(map[string]string{}), as("a")))
	equal("the data", made.Data, map[string]string{"b": "1", "both": "x"})
	_, err := client.Apply(c, config(map[string]string{"b": "2", "both": "y"}), as("a"))
	refused(err, isConflict, "Apply failed with 2 conflicts", ".data.b", ".data.both")

	missing := coreapply.ConfigMap("settings", c.namespace).WithResourceVersion("1")
	_, err = client.Apply(c, missing, as("a"))
	refused(err, isConflict)
	dry := as("a")
	dry.DryRun = []string{metav1.DryRunAll}
	must(client.Apply(c, config(map[string]string{"dry": "1"}), dry))
	equal("the data after a dry run", must(c.getConfigMap("settings")).Data["dry"], "")
	_, err = client.Apply(c, config(nil), metav1.ApplyOptions{})
	refused(err, errors.IsInvalid, "fieldManager: Required value: is required for apply patch")
}

// applyShared: lists with keys belong to several, entry by entry.
func applyShared(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	must(client.Apply(c, webApply(c), as("a")))
	sidecar := func() *appsapply.DeploymentApplyConfiguration {
		return appsapply.Deployment("web", c.namespace).WithSpec(appsapply.DeploymentSpec().
			WithTemplate(coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(
				coreapply.Container().WithName("side").WithImage("example.com/side:1").
					WithPorts(coreapply.ContainerPort().WithContainerPort(90))))))
	}
	made := must(client.Apply(c, sidecar(), as("b")))
	names := func() (names []string) {
		for _, container := range made.Spec.Template.Spec.Containers {
			names = append(names, container.Name)
		}
		return names
	}
	equal("containers", names(), []string{"main", "side"})
	wider := sidecar()
	wider.Spec.Template.Spec.Containers[0].WithPorts(coreapply.ContainerPort().WithContainerPort(91).WithName("more"))
	made = must(client.Apply(c, wider, as("b")))
	equal("ports", len(made.Spec.Template.Spec.Containers[1].Ports), 2)
	made = must(client.Apply(c, sidecar(), as("b")))
	equal("ports after one is left out", len(made.Spec.Template.Spec.Containers[1].Ports), 1)
	made = must(client.Apply(c, appsapply.Deployment("web", c.namespace), as("b")))
	equal("containers after one is left out", names(), []string{"main"})
	equal("the managers", managersOf(made), []string{"a Apply"})
}

func applyExtract(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	made := must(client.Apply(c, webApply(c), as("a")))
	extracted := must(appsapply.ExtractDeployment(made, "a"))
	// The UID and the version are no fields that somebody owns.
	equal("what was applied", extracted, webApply(c))
	extracted.Spec.WithReplicas(5)
	made = must(client.Apply(c, extracted, as("a")))
	equal("replicas", *made.Spec.Replicas, 5)
}

func applyStatus(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	must(client.Apply(c, webApply(c), as("a")))
	status := appsapply.Deployment("web", c.namespace).WithStatus(appsapply.DeploymentStatus().WithReplicas(1).
		WithConditions(appsapply.DeploymentCondition().WithType("Available").WithStatus("True")))
	made := must(client.ApplyStatus(c, status, as("controller")))
	equal("replicas", made.Status.Replicas, 1)
	equal("conditions", len(made.Status.Conditions), 1)
	equal("the managers", managersOf(made), []string{"a Apply", "controller Apply status"})
	equal("the generation", made.Generation, 1)
}

// applyAfterUpdate: who updates owns what changed.
func applyAfterUpdate(c *cluster) {
	client := c.typed.AppsV1().Deployments(c.namespace)
	made := must(client.Apply(c, webApply(c), as("a")))
	made.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
	made = must(client.Update(c, made, metav1.UpdateOptions{FieldManager: "hand"}))
	equal("the managers", managersOf(made), []string{"a Apply", "hand Update"})
	_, err := client.Apply(c, webApply(c), as("a"))
	refused(err, isConflict, `conflict with "hand" using apps/v1`, `.spec.template.spec.containers[name="main"].image`)
	made = must(client.Apply(c, webApply(c), force("a")))
	equal("the image", made.Spec.Template.Spec.Containers[0].Image, "example.com/main:1")
	equal("the managers by force", managersOf(made), []string{"a Apply"})
}

func applyCustom(c *cluster) {
	group, sails := c.defineSails()
	rope := func(name string, length int64) *unstructured.Unstructured {
		sail := newSail(group, "main")
		ropes := []any{map[string]any{"name": name, "length": length}}
		ok(unstructured.SetNestedSlice(sail.Object, ropes, "spec", "ropes"))
		return sail
	}
	must(sails.Apply(c, "main", rope("sheet", 10), as("a")))
	made := must(sails.Apply(c, "main", rope("halyard", 20), as("b")))
	equal("ropes", len(field[[]any](made, "spec", "ropes")), 2)
	_, err := sails.Apply(c, "main", rope("sheet", 12), as("b"))
	refused(err, isConflict, `.spec.ropes[name="sheet"].length`)
	made = must(sails.Apply(c, "main", rope("sheet", 12), force("b")))
	equal("ropes by force", len(field[[]any](made, "spec", "ropes")), 1)
	c.forgetSails(group)
}
