//! What is done, one phase after the other?

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use http::Uri;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::arguments::{InformerArguments, Phase, name_of};
use super::control::Control;
use super::digest::Digest;
use super::figures::{BusyReads, Events, Figures, FirstList, Latency, ReadTimes, Reads, Relist, Report, micros};
use super::heard::Heard;
use super::library::{Cache, Library, Setup};
use super::reads::Targets;
use super::{Outcome, usage, version_of};

/// How often it is looked whether this process works.
const LOOK: Duration = Duration::from_millis(20);
/// It rests if it has used less than this from one look to the next: the looks themselves take a tenth of it.
const REST: Duration = Duration::from_micros(400);
/// It has come to rest when it rests for so long, or for as long as the library says. (A process that is kept from working by
/// others seems to rest too, for a while.)
const QUIET: Duration = Duration::from_millis(100);
/// It has to come to rest some time.
const SETTLING: Duration = Duration::from_secs(300);
/// Memory is looked at so long after all is done.
const AFTER: Duration = Duration::from_secs(2);
/// How many pods are read.
const PLACES: u64 = 10_000;
/// While the cache is read, events are ordered for so long at a time.
const BUSY_SPAN: Duration = Duration::from_millis(300);

/// Starts an informer, does what is asked for, and compares its cache with the server's.
pub(crate) async fn run<L: Library>(arguments: InformerArguments<L::Mode>) -> Outcome<Report> {
    let server: Uri = arguments.server.parse()?;
    let control = Control::new(&server);
    let objects = control.digest().await?.objects;
    let heard: Vec<Arc<Heard>> = (0..arguments.handlers).map(|_| Arc::new(Heard::new())).collect();
    let setup = Setup { server, mode: arguments.mode, handler: arguments.handler, heard: &heard };

    usage::reset_peak()?;
    let (rss_base, before) = (usage::resident()?, Before::now());
    let cache = L::start(setup, arguments.phases.contains(&Phase::Reads)).await?;
    let run =
        Run { control, cache, heard, over: arguments.over.unwrap_or(objects).min(objects), arguments: &arguments };
    for heard in &run.heard {
        heard.until_calls(objects).await?;
    }
    run.cache.synced().await?;
    let wall_s = before.wall_s();
    let cpu_s = before.cpu_until(run.settled().await?).as_secs_f64();
    if run.asked(Phase::Sync) {
        sleep(AFTER).await;
    }
    let sync = FirstList { wall_s, cpu_s, rss_base, rss_peak: usage::peak()?, rss_after: usage::resident()?, objects };

    let mut figures = Figures { sync: run.asked(Phase::Sync).then_some(sync), ..Figures::default() };
    if run.asked(Phase::Relist) {
        figures.relist = Some(run.relist().await?);
    }
    if run.asked(Phase::Events) {
        figures.events = Some(run.events().await?);
    }
    if run.asked(Phase::Latency) {
        figures.latency = Some(run.latency().await?);
    }
    if run.asked(Phase::Reads) {
        figures.reads = Some(run.reads().await?);
    }
    run.check().await?;
    Ok(Report {
        driver: L::NAME,
        version: version_of(L::PACKAGE),
        mode: name_of(&arguments.mode),
        handler: name_of(&arguments.handler),
        handlers: arguments.handlers,
        figures,
        check: "ok",
    })
}

/// Time and CPU time when something began.
struct Before {
    time: Instant,
    cpu: Duration,
}

impl Before {
    fn now() -> Self {
        Self { time: Instant::now(), cpu: usage::cpu() }
    }

    fn wall_s(&self) -> f64 {
        self.time.elapsed().as_secs_f64()
    }

    fn cpu_until(&self, cpu: Duration) -> Duration {
        cpu.saturating_sub(self.cpu)
    }
}

/// An informer at work.
struct Run<'a, C, M: ValueEnum + Clone + Send + Sync + 'static> {
    control: Control,
    cache: C,
    heard: Vec<Arc<Heard>>,
    over: u64,
    arguments: &'a InformerArguments<M>,
}

impl<C: Cache, M: ValueEnum + Clone + Send + Sync + 'static> Run<'_, C, M> {
    fn asked(&self, phase: Phase) -> bool {
        self.arguments.phases.contains(&phase)
    }

    async fn relist(&self) -> Outcome<Relist> {
        let rss_before = usage::resident()?;
        usage::reset_peak()?;
        let before = Before::now();
        let marker = self.control.expire().await?;
        self.all_heard(marker).await?;
        let wall_s = before.wall_s();
        let cpu_s = before.cpu_until(self.settled().await?).as_secs_f64();
        sleep(AFTER).await;
        Ok(Relist { wall_s, cpu_s, rss_before, rss_peak: usage::peak()?, rss_after: usage::resident()? })
    }

    async fn events(&self) -> Outcome<Events> {
        let count = self.arguments.events;
        // The server has made all of them when it answers.
        let versions = self.control.events(count, self.over, 0).await?;
        let before = Before::now();
        self.all_heard(versions.last).await?;
        let wall_s = before.wall_s();
        let cpu = before.cpu_until(self.settled().await?);
        let (per_s, cpu_us) = (count as f64 / wall_s, micros(cpu) / count as f64);
        Ok(Events { count, wall_s, cpu_s: cpu.as_secs_f64(), per_s, cpu_us })
    }

    async fn latency(&self) -> Outcome<Latency> {
        let InformerArguments { rate, rated_events: count, .. } = *self.arguments;
        let [first, ..] = self.heard.as_slice() else { return Err("there is no handler".into()) };
        first.record(usize::try_from(count)?);
        let before = Before::now();
        let versions = self.control.events(count, self.over, rate).await?;
        self.all_heard(versions.last).await?;
        let cpu = before.cpu_until(self.settled().await?);
        let sent = self.control.sent(versions).await?;
        let arrivals = first.recorded();
        let times = arrivals.iter().filter_map(|arrival| {
            let sent = sent.get(usize::try_from(arrival.version.checked_sub(versions.first)?).ok()?)?;
            Some(Duration::from_nanos(arrival.nanos.saturating_sub(*sent)))
        });
        let times: Vec<Duration> = times.collect();
        // A state that another one followed at once may be left out. If many are, this is not what is measured.
        if (times.len() as u64) < count - count / 100 {
            return Err(format!("of {count} events the first handler heard {}", times.len()).into());
        }
        Latency::of(times, cpu).ok_or_else(|| "there was no event".into())
    }

    async fn reads(&self) -> Outcome<Reads> {
        let targets = Arc::new(Targets::<C>::new(self.control.places(PLACES).await?)?);
        let idle = self.read(&targets).await??;

        let mut reading = self.read(&targets);
        let (mut events, mut count, started) = (0, 1000, Instant::now());
        let times = loop {
            let begun = Instant::now();
            let versions = self.control.events(count, self.over, 0).await?;
            self.all_heard(versions.last).await?;
            events += count;
            if let Ok(times) = reading.try_recv() {
                break times?;
            }
            count = (count as f64 * BUSY_SPAN.div_duration_f64(begun.elapsed())).clamp(100.0, 1e6) as u64;
        };
        let events_per_s = events as f64 / started.elapsed().as_secs_f64();
        self.settled().await?;
        Ok(Reads { idle, busy: BusyReads { times, events_per_s } })
    }

    /// Reads on a thread of its own.
    fn read(&self, targets: &Arc<Targets<C>>) -> oneshot::Receiver<Outcome<ReadTimes>> {
        let (sender, receiver) = oneshot::channel();
        let (cache, targets) = (self.cache.clone(), targets.clone());
        std::thread::spawn(move || sender.send(targets.read(&cache)));
        receiver
    }

    async fn all_heard(&self, version: u64) -> Outcome {
        for heard in &self.heard {
            heard.until_version(version).await?;
        }
        Ok(())
    }

    /// Waits until nothing is left to be done, and nothing was done for a moment. The CPU time that was used until then.
    async fn settled(&self) -> Outcome<Duration> {
        let started = Instant::now();
        let (mut rest_since, mut cpu_at_rest, mut before) = (started, usage::cpu(), usage::cpu());
        while started.elapsed() < SETTLING {
            sleep(LOOK).await;
            let cpu = usage::cpu();
            if cpu - before > REST || !self.cache.is_at_rest() {
                (rest_since, cpu_at_rest) = (Instant::now(), cpu);
            } else if rest_since.elapsed() >= QUIET {
                return Ok(cpu_at_rest);
            }
            before = cpu;
        }
        Err(format!("the informer does not come to rest within {} s", SETTLING.as_secs()).into())
    }

    /// Is the cache what the server has?
    async fn check(&self) -> Outcome {
        let expected = self.control.digest().await?;
        let mut actual = Digest::default();
        self.cache.all(|namespace, name, version| actual.add(namespace, name, version));
        if actual != expected {
            return Err(format!("the cache is not what the server has: {actual}, and not {expected}").into());
        }
        Ok(())
    }
}
