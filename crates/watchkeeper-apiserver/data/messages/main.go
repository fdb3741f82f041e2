// Command messages writes what a reader of Kubernetes' protobuf must know of the types of built-in kinds: which number a
// field has, which name it has in JSON, and what it is. It reads that from the tags of the Go types. With the argument
// "examples" it writes objects in both encodings instead.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	aggregatorv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A field is its number, its name in JSON (none, if its own fields stand in its place), what it is, and whether a zero
// stands for nothing.
//
// What it is: a letter for a scalar, `*` before it for a list and `%` for a map, `m` and the index of a type for a message.
type field [4]any

type table struct {
	// Kinds have the index of their type, by `apiVersion kind`.
	Kinds map[string]int `json:"kinds"`
	Types [][]field      `json:"types"`

	known map[reflect.Type]int
}

// letters of the types that JSON shows in a way of their own.
var letters = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "t",
	reflect.TypeFor[metav1.MicroTime]():     "u",
	reflect.TypeFor[metav1.Duration]():      "l",
	reflect.TypeFor[resource.Quantity]():    "q",
	reflect.TypeFor[intstr.IntOrString]():   "n",
	reflect.TypeFor[runtime.RawExtension](): "r",
	reflect.TypeFor[metav1.FieldsV1]():      "r",
	reflect.TypeFor[apiextensionsv1.JSON](): "r",
}

// schemas are either a schema or something else: a list, a boolean, a list of texts.
var schemas = map[reflect.Type]string{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "A",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "B",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "S",
}

func main() {
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, aggregatorv1.AddToScheme} {
		if err := add(kinds); err != nil {
			exit(err)
		}
	}
	result := &table{Kinds: map[string]int{}, known: map[reflect.Type]int{}}
	// The options of a deletion have the same type in every group.
	result.Kinds["DeleteOptions"] = result.message(reflect.TypeFor[metav1.DeleteOptions]())
	names := map[string]reflect.Type{}
	for kind, goType := range kinds.AllKnownTypes() {
		// Lists and options are not sent as bodies.
		_, isList := reflect.New(goType).Interface().(metav1.ListInterface)
		if isList || kind.Kind == "WatchEvent" || strings.HasSuffix(kind.Kind, "Options") || kind.Version == runtime.APIVersionInternal {
			continue
		}
		names[kind.GroupVersion().String()+" "+kind.Kind] = goType
	}
	if slices.Contains(os.Args[1:], "examples") {
		names["v1 DeleteOptions"] = reflect.TypeFor[metav1.DeleteOptions]()
		if err := writeExamples(os.Stdout, kinds, names); err != nil {
			exit(err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		result.Kinds[name] = result.message(names[name])
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		exit(err)
	}
}

// message is the index of a type.
func (t *table) message(goType reflect.Type) int {
	if index, known := t.known[goType]; known {
		return index
	}
	index := len(t.Types)
	t.known[goType] = index
	t.Types = append(t.Types, nil)
	fields := []field{}
	for i := range goType.NumField() {
		member := goType.Field(i)
		tag, tagged := member.Tag.Lookup("protobuf")
		if !tagged || tag == "-" {
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			exit(fmt.Errorf("%v.%s: %w", goType, member.Name, err))
		}
		name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" && !strings.Contains(options, "inline") {
			exit(fmt.Errorf("%v.%s has no name", goType, member.Name))
		}
		drops := member.Type.Kind() != reflect.Pointer && strings.Contains(options, "omit")
		if member.Type.Kind() == reflect.Struct && !strings.Contains(options, "omitzero") {
			drops = false
		}
		fields = append(fields, field{number, name, t.what(member.Type), drops})
	}
	slices.SortFunc(fields, func(a, b field) int { return a[0].(int) - b[0].(int) })
	t.Types[index] = fields
	return index
}

func (t *table) what(goType reflect.Type) string {
	if letter, special := letters[goType]; special {
		return letter
	}
	if letter, special := schemas[goType]; special {
		return letter + strconv.Itoa(t.message(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()))
	}
	_, isMessage := reflect.New(goType).Interface().(interface{ Unmarshal([]byte) error })
	switch goType.Kind() {
	case reflect.Pointer:
		return t.what(goType.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "o"
	case reflect.Int32, reflect.Int64:
		return "i"
	case reflect.Float64:
		return "f"
	case reflect.Struct:
		return "m" + strconv.Itoa(t.message(goType))
	case reflect.Map:
		return "%" + t.what(goType.Elem())
	case reflect.Slice:
		switch {
		case goType.Elem().Kind() == reflect.Uint8:
			return "y"
		case isMessage && goType.Elem().Kind() == reflect.String:
			// A list that is a message of its own, with its items as field 1.
			return "w"
		default:
			return "*" + t.what(goType.Elem())
		}
	}
	exit(fmt.Errorf("%v is not known", goType))
	return ""
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
