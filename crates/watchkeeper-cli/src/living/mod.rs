//! A cluster that lives: what `demo` and `serve --demo` show.
//!
//! [`World`](world) plans a cluster from a seed, [`fill`] puts its objects into a server in their settled state, the
//! [controllers] keep it going, and [`life`] sees to it that something happens. The controllers are ordinary ones, on the
//! informers and queues of the library, over a client of the server: nothing of it knows that there is no real cluster.
//!
//! The same seed makes the same beginning. What happens then is decided by the seed too, but when, and what comes of it,
//! depends on the time that everything takes.

mod api;
mod clock;
mod controllers;
mod fill;
mod life;
mod names;
mod objects;
mod options;
mod own_writes;
mod recorder;
mod story;
#[cfg(test)]
mod tests;
mod views;
mod world;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};
use watchkeeper::{Error, InformerFactory};
use watchkeeper_apiserver::{ApiServer, Failure};

use self::api::Api;
use self::clock::Clock;
use self::controllers::kubelet::Fates;
use self::controllers::nodes::{self, Outages};
use self::controllers::{Cluster, Informers, Team, deployment, endpoints, job, kubelet, replica_set, scheduler};
use self::fill::Filler;
use self::life::Life;
use self::recorder::Recorder;
use self::story::Story;
use self::world::World;

pub(crate) use self::controllers::QueueSample;
pub(crate) use self::options::{FEWEST, LivingOptions, MOST};
pub(crate) use self::story::Happening;

/// A cluster that lives in a server. Dropping it stops it; [`stop`](Self::stop) waits for that.
pub(crate) struct Living {
    factory: InformerFactory,
    team: Team,
    cluster: Arc<Cluster>,
    fates: Fates,
    outages: Outages,
    stop: DropGuard,
}

/// Why a cluster did not come to life.
#[derive(Debug)]
pub(crate) enum LivingError {
    /// The server did not take an object.
    Filling(Failure),
    /// The work was not brought to its end.
    Lost(JoinError),
    /// The informers did not start.
    Informers(Error),
}

impl fmt::Display for LivingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filling(failure) => write!(f, "the server does not take the objects of the cluster: {failure}"),
            Self::Lost(error) => write!(f, "the objects of the cluster were not made: {error}"),
            Self::Informers(error) => write!(f, "the controllers of the cluster did not start: {error}"),
        }
    }
}

impl std::error::Error for LivingError {}

impl From<Failure> for LivingError {
    fn from(failure: Failure) -> Self {
        Self::Filling(failure)
    }
}

impl From<Error> for LivingError {
    fn from(error: Error) -> Self {
        Self::Informers(error)
    }
}

impl Living {
    /// Fills a server, and begins to live in it until `token` is cancelled. When this returns the objects are there, and
    /// the controllers have been started; [`ready`](Self::ready) waits until they have seen everything.
    pub(crate) async fn start(
        server: &ApiServer,
        options: LivingOptions,
        token: CancellationToken,
    ) -> Result<Self, LivingError> {
        let clock = Clock::starting_at(options.now.unwrap_or_else(Timestamp::now));
        let world = World::plan(&options);
        let heartbeat = nodes::heartbeat(world.nodes.len());
        let (filled, now) = (server.clone(), clock.now());
        // A thread of its own: many objects take a while, in which somebody may have seen enough.
        let filling = tokio::task::spawn_blocking(move || {
            let mut put = |object| filled.put(object).map(|_| ());
            let pods = Filler::new(&world, options.seed, now, &mut put).fill(4 * heartbeat.as_secs())?;
            Ok::<_, LivingError>((world, pods))
        });
        let (world, pods) = filling.await.map_err(LivingError::Lost)??;

        let token = token.child_token();
        let stop = token.clone().drop_guard();
        let (api, story) = (Api::new(server.client()), Story::new(clock));
        let factory = InformerFactory::new(server.client());
        let most_events = (options.size() / 20).clamp(10, 1000);
        let (recorder, recording) = Recorder::new(api.clone(), clock, most_events, token.clone());
        let cluster = Arc::new(Cluster {
            api,
            clock,
            story,
            recorder,
            informers: Informers::of(&factory, options.size()).await?,
            most_pods: options.size() + 500,
            addresses: AtomicU32::new(pods),
        });
        let mut team = Team::new(token.clone());
        team.also(recording);
        deployment::join(&mut team, &cluster);
        replica_set::join(&mut team, &cluster);
        job::join(&mut team, &cluster);
        scheduler::join(&mut team, &cluster);
        let fates = kubelet::join(&mut team, &cluster);
        let outages = nodes::join(&mut team, &cluster, heartbeat);
        endpoints::join(&mut team, &cluster);
        let (healed, until) = (cluster.clone(), token.clone());
        team.also(async move {
            let _ = until.run_until_cancelled(healed.informers.heal()).await;
        });
        let living = Self { factory, team, cluster, fates, outages, stop };
        living.factory.start(token.clone())?;
        Ok(living.with_life(server, &options, &world, token))
    }

    fn with_life(
        mut self,
        server: &ApiServer,
        options: &LivingOptions,
        world: &World,
        token: CancellationToken,
    ) -> Self {
        if options.writes_per_second() > 0.0 {
            let life = Life::new(server, options, world, &self.cluster, &self.fates, &self.outages);
            self.team.also(async move {
                let _ = token.run_until_cancelled(life.live()).await;
            });
        }
        self
    }

    /// Waits until the controllers have seen everything that there is.
    #[cfg(test)]
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        self.factory.wait_synced().await.into_result()
    }

    /// How the controllers' queues are doing.
    pub(crate) fn queues(&self) -> Vec<QueueSample> {
        self.team.samples()
    }

    /// The latest that happened, oldest first, no more than `most`.
    pub(crate) fn happening(&self, most: usize) -> Vec<Happening> {
        self.cluster.story.last(most)
    }

    /// Stops everything, and waits until nothing is left running. The objects stay in the server.
    pub(crate) async fn stop(mut self) {
        self.stop.disarm().cancel();
        self.team.stopped().await;
        self.factory.shutdown().await;
    }
}
