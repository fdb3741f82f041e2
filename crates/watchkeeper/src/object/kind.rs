//! What the API server calls a Rust type.

use kube_core::{ApiResource, Resource};

/// A type that objects of one kind decode into.
///
/// Every `kube::Resource` whose kind is known at compile time is one: the types of `k8s-openapi`, those that
/// `#[derive(CustomResource)]` makes, `PartialObjectMeta<Pod>`. [`view_of!`](crate::view_of) makes one of a struct with just
/// the fields that matter, which decodes several times as fast.
pub trait Kind {
    /// The kind's names, as in URLs and objects.
    fn resource() -> ApiResource;
}

impl<K: Resource<DynamicType = ()>> Kind for K {
    fn resource() -> ApiResource {
        ApiResource::erase::<K>(&())
    }
}

/// Says that a struct is a view of a kind: that objects of the kind decode into it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use serde::Deserialize;
/// use watchkeeper::{Kind, view_of};
///
/// #[derive(Deserialize)]
/// struct Placement {
///     spec: PlacementSpec,
/// }
///
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct PlacementSpec {
///     node_name: Option<String>,
/// }
///
/// view_of!(Placement: Pod);
/// assert_eq!(Placement::resource().plural, "pods");
/// ```
#[macro_export]
macro_rules! view_of {
    ($view:ty : $kind:ty) => {
        impl $crate::Kind for $view {
            fn resource() -> $crate::__private::ApiResource {
                <$kind as $crate::Kind>::resource()
            }
        }
    };
}
