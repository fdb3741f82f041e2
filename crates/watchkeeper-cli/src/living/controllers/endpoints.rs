//! EndpointSlices: which pods stand behind a Service.

use std::sync::Arc;

use serde_json::json;
use watchkeeper::{Lister, ObjectKey, Outcome, ReconcileError, Selector};

use super::{BY_SELECTOR, Cluster, Team, decoded, differs, selected_by, target};
use crate::living::api::Resource;
use crate::living::objects::slice;
use crate::living::own_writes::OwnWrites;
use crate::living::views::{PodView, ServiceView, SliceView};

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (services, pods) = (&cluster.informers.services, &cluster.informers.pods);
    let slices = &cluster.informers.slices;
    let clerk = Arc::new(Clerk {
        services: services.lister(),
        slices: slices.lister(),
        pods: pods.lister(),
        own: OwnWrites::new(slices.lister()),
        cluster: cluster.clone(),
    });
    let selecting = services.lister();
    let sources = |controller: watchkeeper::Controller| {
        let controller = controller.reconciles(services).owns::<k8s_openapi::api::core::v1::Service, _>(slices);
        // A pod concerns the Services that select by one of its labels.
        controller.watches(pods, move |pod| {
            let namespace = pod.key().namespace();
            let labels = pod.labels().iter().map(selected_by).collect::<Vec<_>>();
            let found = labels.iter().filter_map(|label| selecting.by_index(BY_SELECTOR, label).ok());
            let keys = found.flatten().map(|service| service.key().clone());
            keys.filter(|key| key.namespace() == namespace).collect::<Vec<_>>()
        })
    };
    team.join("endpoints", 2, sources, move |key: ObjectKey| {
        let clerk = clerk.clone();
        async move { clerk.reconcile(&key).await }
    });
}

struct Clerk {
    cluster: Arc<Cluster>,
    services: Lister<ServiceView>,
    slices: Lister<SliceView>,
    pods: Lister<PodView>,
    own: OwnWrites<SliceView>,
}

impl Clerk {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        self.own.seen(key).await?;
        let Some(object) = self.services.get(key) else { return Ok(Outcome::Done) };
        let service = decoded(&object)?;
        if service.metadata.is_deleting() {
            return Ok(Outcome::Done);
        }
        let namespace = key.namespace().unwrap_or_default();
        let selector = Selector::labels(&service.spec.selector).map_err(ReconcileError::terminal)?;
        let pods = self.pods.namespace(namespace).matching(&selector);
        let pods: Vec<_> = pods.iter().filter_map(|pod| pod.decode().ok()).collect();
        let pods: Vec<&PodView> = pods.iter().map(|pod| &**pod).collect();
        let Some(wanted) = slice::of_service(&service, &pods) else { return Ok(Outcome::Done) };
        let of_slice = ObjectKey::namespaced(namespace, slice::name(key.name()));
        let Some(present) = self.slices.get(&of_slice) else {
            let made = self.cluster.api.create(Resource::EndpointSlices, namespace, &wanted).await?;
            self.own.note(key, &made.metadata.resource_version);
            return Ok(Outcome::Done);
        };
        let present = decoded(&present)?;
        if differs(&present.endpoints, &wanted["endpoints"]) || differs(&present.ports, &wanted["ports"]) {
            let patch = json!({
                "metadata": {"resourceVersion": present.metadata.resource_version},
                "endpoints": wanted["endpoints"],
                "ports": wanted["ports"],
            });
            let written = self.cluster.api.patch(target(Resource::EndpointSlices, &of_slice), &patch).await?;
            self.own.note(key, &written.metadata.resource_version);
        }
        Ok(Outcome::Done)
    }
}
