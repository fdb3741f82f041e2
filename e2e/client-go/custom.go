package main

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
)

var customChecks = []check{
	{name: "custom/dynamic-informer", run: dynamicInformer},
	{name: "custom/schema", run: customSchema},
	{name: "custom/status", run: customStatus},
	{name: "custom/versions", run: customVersions},
	{name: "custom/definition-goes", run: definitionGoes},
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// sailDefinition has a group of its own for each check; GROUP stands for it.
const sailDefinition = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "sails.GROUP"},
  "spec": {
    "group": "GROUP", "scope": "Namespaced",
    "names": {"plural": "sails", "singular": "sail", "kind": "Sail", "shortNames": ["sl"]},
    "versions": [
      {
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
          "type": "object",
          "properties": {
            "spec": {
              "type": "object", "required": ["area"],
              "properties": {
                "area": {"type": "integer", "minimum": 1, "maximum": 1000},
                "cloth": {"type": "string", "enum": ["canvas", "nylon"], "default": "canvas"},
                "reefs": {"type": "integer", "default": 2},
                "ropes": {
                  "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                  "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "length": {"type": "integer"}}}
                }
              }
            },
            "status": {"type": "object", "properties": {
              "set": {"type": "boolean"}, "reefs": {"type": "integer"}, "selector": {"type": "string"}}}
          }
        }},
        "subresources": {"status": {}, "scale": {
          "specReplicasPath": ".spec.reefs", "statusReplicasPath": ".status.reefs", "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [{"name": "Area", "type": "integer", "jsonPath": ".spec.area"}]
      },
      {
        "name": "v1beta1", "served": true, "storage": false,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
      }
    ]
  }
}`

func parse(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	ok(json.Unmarshal([]byte(text), &object.Object))
	return object
}

func newSail(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Sail", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"area": int64(40)},
	}}
}

// defineSails makes the kind, waits until it is served, and returns its group and a client.
func (c *cluster) defineSails() (string, dynamic.ResourceInterface) {
	group := c.namespace + ".example.com"
	client := c.dynamic.Resource(definitions)
	made := must(client.Create(c, parse(strings.ReplaceAll(sailDefinition, "GROUP", group)), metav1.CreateOptions{}))
	c.eventually("the definition is established", func() bool {
		object := must(client.Get(c, made.GetName(), metav1.GetOptions{}))
		return conditionOf(object, "Established") == "True" && conditionOf(object, "NamesAccepted") == "True"
	})
	sails := c.sails(group, "v1")
	// A definition is established a moment before every server knows it.
	c.eventually("the kind is served", func() bool {
		_, err := sails.List(c, metav1.ListOptions{})
		return err == nil
	})
	return group, sails
}

// forgetSails removes the kind. Checks that fail leave it.
func (c *cluster) forgetSails(group string) {
	ok(c.dynamic.Resource(definitions).Delete(c, "sails."+group, metav1.DeleteOptions{}))
}

func (c *cluster) sails(group, version string) dynamic.ResourceInterface {
	return c.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "sails"}).Namespace(c.namespace)
}

func conditionOf(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, is := condition.(map[string]any); is && fields["type"] == kind {
			status, _ := fields["status"].(string)
			return status
		}
	}
	return ""
}

func field[T any](object *unstructured.Unstructured, path ...string) T {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	ok(err)
	typed, is := value.(T)
	if !found || !is {
		fail("%s is %v", strings.Join(path, "."), value)
	}
	return typed
}

func dynamicInformer(c *cluster) {
	group, sails := c.defineSails()
	must(sails.Create(c, newSail(group, "main"), metav1.CreateOptions{}))
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, nil)
	informer := factory.ForResource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "sails"})
	book := &logbook{}
	must(informer.Informer().AddEventHandler(recorder(book)))
	defer factory.Shutdown()
	ctx, stop := context.WithCancel(c)
	defer stop()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(c.Done())
	c.tells(book, "added main")

	must(sails.Create(c, newSail(group, "jib"), metav1.CreateOptions{}))
	jib := must(sails.Get(c, "jib", metav1.GetOptions{}))
	ok(unstructured.SetNestedField(jib.Object, int64(20), "spec", "area"))
	must(sails.Update(c, jib, metav1.UpdateOptions{}))
	ok(sails.Delete(c, "jib", metav1.DeleteOptions{}))
	c.tells(book, "added main", "added jib", "updated jib", "deleted jib")
	cached := must(informer.Lister().ByNamespace(c.namespace).Get("main")).(*unstructured.Unstructured)
	equal("the cached object", cached, must(sails.Get(c, "main", metav1.GetOptions{})))
	c.forgetSails(group)
	c.tells(book, "added main", "added jib", "updated jib", "deleted jib", "deleted main")
}

func customSchema(c *cluster) {
	group, sails := c.defineSails()
	sail := newSail(group, "main")
	ok(unstructured.SetNestedField(sail.Object, "cotton", "spec", "lining"))
	made := must(sails.Create(c, sail, metav1.CreateOptions{}))
	equal("a default", field[string](made, "spec", "cloth"), "canvas")
	_, found, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "lining")
	equal("an unknown field is kept", found, false)

	_, err := sails.Create(c, sail, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	refused(err, errors.IsBadRequest, `unknown field "spec.lining"`)
	wrong := newSail(group, "wrong")
	ok(unstructured.SetNestedField(wrong.Object, int64(2000), "spec", "area"))
	ok(unstructured.SetNestedField(wrong.Object, "paper", "spec", "cloth"))
	_, err = sails.Create(c, wrong, metav1.CreateOptions{})
	refused(err, errors.IsInvalid, "spec.area: Invalid value: 2000", `supported values: "canvas", "nylon"`)
	unstructured.RemoveNestedField(wrong.Object, "spec", "area")
	_, err = sails.Create(c, wrong, metav1.CreateOptions{})
	refused(err, errors.IsInvalid, "spec.area: Required value")
	c.forgetSails(group)
}

func customStatus(c *cluster) {
	group, sails := c.defineSails()
	sail := newSail(group, "main")
	sail.Object["status"] = map[string]any{"set": true}
	made := must(sails.Create(c, sail, metav1.CreateOptions{}))
	equal("the status of a new object is there", made.Object["status"], nil)
	equal("the generation", made.GetGeneration(), 1)
	made.Object["status"] = map[string]any{"set": true, "reefs": int64(1), "selector": "sail=main"}
	updated := must(sails.UpdateStatus(c, made, metav1.UpdateOptions{}))
	equal("the generation behind a status", updated.GetGeneration(), 1)
	equal("the status", field[bool](updated, "status", "set"), true)

	scale := must(sails.Get(c, "main", metav1.GetOptions{}, "scale"))
	equal("the kind of a scale", scale.GetKind(), "Scale")
	equal("its replicas", field[int64](scale, "spec", "replicas"), 2)
	equal("its selector", field[string](scale, "status", "selector"), "sail=main")
	ok(unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas"))
	must(sails.Update(c, scale, metav1.UpdateOptions{}, "scale"))
	scaled := must(sails.Get(c, "main", metav1.GetOptions{}))
	equal("reefs", field[int64](scaled, "spec", "reefs"), 3)
	equal("the generation behind a scale", scaled.GetGeneration(), 2)
	c.forgetSails(group)
}

func customVersions(c *cluster) {
	group, sails := c.defineSails()
	must(sails.Create(c, newSail(group, "main"), metav1.CreateOptions{}))
	beta := must(c.sails(group, "v1beta1").Get(c, "main", metav1.GetOptions{}))
	equal("the version", beta.GetAPIVersion(), group+"/v1beta1")
	equal("the area", field[int64](beta, "spec", "area"), 40)
	beta.SetLabels(map[string]string{"seen": "beta"})
	must(c.sails(group, "v1beta1").Update(c, beta, metav1.UpdateOptions{}))
	equal("the label", must(sails.Get(c, "main", metav1.GetOptions{})).GetLabels()["seen"], "beta")
	c.forgetSails(group)
}

func definitionGoes(c *cluster) {
	group, sails := c.defineSails()
	must(sails.Create(c, newSail(group, "main"), metav1.CreateOptions{}))
	c.forgetSails(group)
	c.gone("the definition", func() error {
		_, err := c.dynamic.Resource(definitions).Get(c, "sails."+group, metav1.GetOptions{})
		return err
	})
	c.gone("the kind", func() error { _, err := sails.List(c, metav1.ListOptions{}); return err })
	// And it can come again, empty.
	_, sails = c.defineSails()
	equal("objects of the new kind", len(must(sails.List(c, metav1.ListOptions{})).Items), 0)
	c.forgetSails(group)
}
