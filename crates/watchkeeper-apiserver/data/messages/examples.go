package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// depth is how often a type may be within itself: schemas are.
const depth = 12

// writeExamples writes an object of each kind whose version is v1 with something in every field, and one with nothing, as
// JSON and as protobuf.
func writeExamples(to io.Writer, kinds *runtime.Scheme, types map[string]reflect.Type) error {
	serializer := protobuf.NewSerializer(kinds, kinds)
	names := slices.Sorted(maps.Keys(types))
	for _, name := range names {
		apiVersion, kind, _ := strings.Cut(name, " ")
		version := schema.FromAPIVersionAndKind(apiVersion, kind)
		if version.Version != "v1" {
			continue
		}
		for _, filled := range []bool{true, false} {
			value := reflect.New(types[name])
			if filled {
				fill(value.Elem(), name, 0)
			}
			object := value.Interface().(runtime.Object)
			object.GetObjectKind().SetGroupVersionKind(version)
			asJSON, err := json.Marshal(object)
			if err != nil {
				return err
			}
			var asProtobuf bytes.Buffer
			if err := serializer.Encode(object, &asProtobuf); err != nil {
				return err
			}
			line := map[string]any{"json": json.RawMessage(asJSON), "protobuf": base64.StdEncoding.EncodeToString(asProtobuf.Bytes())}
			if err := json.NewEncoder(to).Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill puts something into every field: texts say where they are.
func fill(value reflect.Value, name string, level int) {
	if !value.CanSet() || level > depth {
		return
	}
	switch special := value.Addr().Interface().(type) {
	case *metav1.Time:
		special.Time = time.Unix(1700000000, 0)
		return
	case *metav1.MicroTime:
		special.Time = time.Unix(1700000000, 1234000)
		return
	case *resource.Quantity:
		*special = resource.MustParse("1500m")
		return
	case *intstr.IntOrString:
		*special = intstr.FromString(name)
		if len(name)%2 == 0 {
			*special = intstr.FromInt32(int32(len(name)))
		}
		return
	case *runtime.RawExtension:
		special.Raw = []byte(`{"raw":[1]}`)
		return
	case *metav1.FieldsV1:
		special.SetRawBytes([]byte(`{"f:spec":{}}`))
		return
	case *apiextensionsv1.JSON:
		special.Raw = []byte(`{"a":[1,"b",null]}`)
		return
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		if level%2 == 0 {
			special.Schema = &apiextensionsv1.JSONSchemaProps{Type: "string"}
		} else {
			special.JSONSchemas = []apiextensionsv1.JSONSchemaProps{{Type: "string"}, {Type: "integer"}}
		}
		return
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		special.Allows = true
		if level%2 == 0 {
			special.Schema = &apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		special.Property = []string{"a", "b"}
		return
	case *metav1.TypeMeta:
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		// Once around is enough.
		if value.Type().Elem() == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && level > 5 {
			return
		}
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), name, level+1)
	case reflect.String:
		value.SetString(name)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(7 - len(name)))
	case reflect.Float64:
		value.SetFloat(float64(len(name)) / 4)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i), value.Type().Field(i).Name, level+1)
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte(name))
			return
		}
		if value.Type().Elem() == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && level > 5 {
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), name, level+1)
	case reflect.Map:
		if value.Type().Elem() == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() && level > 5 {
			return
		}
		value.Set(reflect.MakeMap(value.Type()))
		element := reflect.New(value.Type().Elem()).Elem()
		fill(element, name, level+1)
		value.SetMapIndex(reflect.ValueOf("key").Convert(value.Type().Key()), element)
	}
}
