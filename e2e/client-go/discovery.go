package main

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

var discoveryChecks = []check{
	{name: "discovery/aggregated", run: aggregatedDiscovery},
	{name: "discovery/older", run: olderDiscovery},
	{name: "discovery/preferred", run: preferredResources},
	{name: "discovery/rest-mapper", run: restMapper},
	{name: "discovery/custom-kind-appears", run: customKindAppears},
	{name: "discovery/openapi-v2", run: openAPIv2},
	{name: "discovery/openapi-v3", run: openAPIv3},
	{name: "discovery/version", run: serverVersion},
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// listening is a client of discovery, and the paths that it asks for.
func (c *cluster) listening() (*discovery.DiscoveryClient, *logbook) {
	asked := &logbook{}
	config := rest.CopyConfig(c.config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			asked.add("%s", request.URL.Path)
			return inner.RoundTrip(request)
		})
	})
	return must(discovery.NewDiscoveryClientForConfig(config)), asked
}

func aggregatedDiscovery(c *cluster) {
	client, asked := c.listening()
	cached := memory.NewMemCacheClient(client)
	groups, resources, err := cached.ServerGroupsAndResources()
	ok(err)
	must(cached.ServerPreferredResources())
	// All groups in two requests; without aggregation it is one for each version of a group.
	equal("requests", asked.all(), []string{"/api", "/apis"})
	equal("groups are there", len(groups) > 20, true)
	equal("the first group", groups[0].Name, "")
	equal("versions of groups are there", len(resources) > 20, true)
	apps := must(cached.ServerResourcesForGroupVersion("apps/v1"))
	var names []string
	for _, resource := range apps.APIResources {
		names = append(names, resource.Name)
	}
	for _, name := range []string{"deployments", "deployments/scale", "deployments/status", "daemonsets"} {
		equal(name+" is there", slices.Contains(names, name), true)
	}
}

func olderDiscovery(c *cluster) {
	groups := must(c.typed.Discovery().WithLegacy().ServerGroups())
	equal("groups are there", len(groups.Groups) > 20, true)
	core := must(c.typed.Discovery().WithLegacy().ServerResourcesForGroupVersion("v1"))
	for _, resource := range core.APIResources {
		if resource.Name == "pods" {
			equal("short names", resource.ShortNames, []string{"po"})
			equal("categories", resource.Categories, []string{"all"})
			equal("the singular", resource.SingularName, "pod")
			return
		}
	}
	fail("there are no pods")
}

func preferredResources(c *cluster) {
	resources := must(discovery.ServerPreferredNamespacedResources(c.typed.Discovery()))
	listable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch", "delete"}}, resources)
	kinds := must(discovery.GroupVersionResources(listable))
	for _, kind := range []schema.GroupVersionResource{deployments, configMaps,
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}} {
		_, known := kinds[kind]
		equal(kind.String()+" is there", known, true)
	}
}

func restMapper(c *cluster) {
	cached := memory.NewMemCacheClient(c.typed.Discovery())
	plain := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapper := restmapper.NewShortcutExpander(plain, cached, nil)
	equal("deploy", must(mapper.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})), deployments)
	equal("cm", must(mapper.ResourceFor(schema.GroupVersionResource{Resource: "cm"})), configMaps)
	equal("deployment.apps", must(mapper.KindFor(schema.GroupVersionResource{Group: "apps", Resource: "deployment"})),
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	mapping := must(mapper.RESTMapping(schema.GroupKind{Kind: "Namespace"}, "v1"))
	equal("the scope of namespaces", mapping.Scope.Name(), meta.RESTScopeNameRoot)
	mapping = must(mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	equal("the scope of deployments", mapping.Scope.Name(), meta.RESTScopeNameNamespace)
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Submarine"})
	refused(err, meta.IsNoMatchError)
}

func customKindAppears(c *cluster) {
	cached := memory.NewMemCacheClient(c.typed.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	must(mapper.KindFor(configMaps))
	group, _ := c.defineSails()
	kind := schema.GroupKind{Group: group, Kind: "Sail"}
	c.eventually("the mapper knows it", func() bool {
		mapper.Reset()
		mapping, err := mapper.RESTMapping(kind)
		return err == nil && mapping.Resource.Version == "v1"
	})
	c.forgetSails(group)
	c.eventually("the mapper forgets it", func() bool {
		mapper.Reset()
		_, err := mapper.RESTMapping(kind)
		return meta.IsNoMatchError(err)
	})
}

// openAPIv2 is asked for as protobuf by client-go, whatever the content type of its configuration is.
func openAPIv2(c *cluster) {
	document := must(c.typed.Discovery().OpenAPISchema())
	equal("the version", document.Swagger, "2.0")
	for _, schema := range document.Definitions.AdditionalProperties {
		if schema.Name == "io.k8s.api.apps.v1.Deployment" {
			return
		}
	}
	fail("there is no Deployment")
}

func openAPIv3(c *cluster) {
	paths := must(c.typed.Discovery().OpenAPIV3().Paths())
	for _, path := range []string{"api/v1", "apis/apps/v1", "version"} {
		equal(path+" is there", paths[path] != nil, true)
	}
	schema := must(paths["apis/apps/v1"].Schema("application/json"))
	equal("the document is there", len(schema) > 10000, true)
}

func serverVersion(c *cluster) {
	version := must(c.typed.Discovery().ServerVersion())
	equal("the major version", version.Major, "1")
}
