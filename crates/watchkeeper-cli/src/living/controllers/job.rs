//! Jobs: one pod that comes to its end.

use std::sync::Arc;

use serde_json::Value;
use watchkeeper::{Lister, ObjectKey, Outcome, ReconcileError};

use super::{Cluster, Team, decoded, differs, owned, target};
use crate::living::api::Resource;
use crate::living::objects::{job, pod};
use crate::living::own_writes::OwnWrites;
use crate::living::views::{JobView, PodView};

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (jobs, pods) = (&cluster.informers.jobs, &cluster.informers.pods);
    let foreman = Arc::new(Foreman {
        jobs: jobs.lister(),
        pods: pods.lister(),
        own: OwnWrites::new(pods.lister()),
        itself: OwnWrites::new(jobs.lister()),
        cluster: cluster.clone(),
    });
    let sources = |controller: watchkeeper::Controller| {
        controller.reconciles(jobs).owns::<k8s_openapi::api::batch::v1::Job, _>(pods)
    };
    team.join("jobs", 1, sources, move |key: ObjectKey| {
        let foreman = foreman.clone();
        async move { foreman.reconcile(&key).await }
    });
}

struct Foreman {
    cluster: Arc<Cluster>,
    jobs: Lister<JobView>,
    pods: Lister<PodView>,
    /// Writes to pods, and to the Job itself.
    own: OwnWrites<PodView>,
    itself: OwnWrites<JobView>,
}

impl Foreman {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        self.own.seen(key).await?;
        self.itself.seen(key).await?;
        let Some(object) = self.jobs.get(key) else { return Ok(Outcome::Done) };
        let view = decoded(&object)?;
        let metadata = &view.metadata;
        if metadata.is_deleting() || is_finished(&view.status) {
            return Ok(Outcome::Done);
        }
        let pods = owned(&self.pods, &metadata.uid)?;
        let now = self.cluster.clock.now();
        let since = started(&view.status).unwrap_or(now);
        let status = if pods.iter().any(|pod| pod.status.phase == "Succeeded") {
            job::complete(since, now)
        } else if let Some(pod) = pods.iter().find(|pod| !pod.is_over()) {
            job::active(since, pod.status.is_ready())
        } else if self.pods.store().len() < self.cluster.most_pods {
            let owner = job::owner(&metadata.name, &metadata.uid);
            let pod = pod::of_template(&view.spec.template, &metadata.namespace, &owner);
            let made = self.cluster.api.create(Resource::Pods, &metadata.namespace, &pod).await?;
            self.own.note(key, &made.metadata.resource_version);
            job::active(since, false)
        } else {
            return Err("this cluster has no room for more pods".into());
        };
        if differs(&view.status, &status) {
            let target = target(Resource::Jobs, key);
            let written = self.cluster.api.patch_status(target, &metadata.resource_version, &status).await?;
            self.itself.note(key, &written.metadata.resource_version);
        }
        Ok(Outcome::Done)
    }
}

fn started(status: &Value) -> Option<jiff::Timestamp> {
    status.get("startTime")?.as_str()?.parse().ok()
}

fn is_finished(status: &Value) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| condition["status"] == "True" && condition["type"] == "Complete")
}
