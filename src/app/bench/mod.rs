//! `quarry bench`: opens what is measured, serves it, and prints and writes what was found.

mod bed;
mod options;
mod others;
mod output;

use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::net::TcpListener;

use self::bed::{Bed, Lent};
use self::options::Options;
use self::output::Output;
use super::AppError;
use super::process::{blocking, on_signals, say};
use super::progress::{self, Lines};
use crate::api::{Api, Settings as ApiSettings};
use crate::bench::against::Patience;
use crate::bench::answer::Way;
use crate::bench::question::Question;
use crate::bench::report::{Machine, Report, Settings};
use crate::bench::sample;
use crate::bench::session::{Observer, Session};
use crate::bench::set::questions;
use crate::bench::statistics::StoreFacts;
use crate::cli::BenchArgs;
use crate::clock;
use crate::http::{Handler, Limits, Pool, PoolLimits, serve};
use crate::query::Reader;
use crate::shutdown::{Shutdown, Trigger, pair};

const WARM: &str = "every path of a question is asked once, then again and again in one open store: blocks of the store come \
                    from its block cache, pages of its arrays from the system's file cache";
const COLD: &str = "before each answer the store is closed, the system is asked to forget the cached pages of its files \
                    (posix_fadvise, DONTNEED), the store is opened with an empty block cache, and what opening has read is \
                    forgotten too; pages stay that another process has mapped, and disks and hosts have caches of their own: \
                    the bytes that came from the disk are counted";

/// `quarry bench`.
pub(super) async fn bench(args: BenchArgs) -> Result<(), AppError> {
    let options = Options::check(&args)?;
    let (_trigger, mut shutdown) = on_signals()?;
    let [json, html] = Output::open([("json", args.json.as_deref()), ("html", args.html.as_deref())])?;
    let began = clock::now();
    let bed = Bed::make(&args, &mut shutdown).await?;
    let store = bed.store()?;
    let (chain, seed) = (args.chain, args.seed);
    let bytes = store.bytes_on_disk();
    let view = store.view();
    let statistics =
        blocking(move || Ok(sample::statistics(&Reader::new(view), chain, bytes, seed)?)).await?;
    let facts = statistics.store.clone();
    if facts.days.is_none() {
        return Err(AppError::Usage("the store holds no blocks yet".to_owned()));
    }
    let (asked, left_out) = questions(&statistics, &args.only);
    if asked.is_empty() && left_out.is_empty() {
        return Err(AppError::Usage(format!(
            "only: no question's name contains `{}`; --list names them",
            args.only
        )));
    }
    if args.list {
        list(&asked, &left_out);
        return Ok(());
    }
    let service = match &options.authority {
        Some(authority) => {
            check_service(authority, &facts).await?;
            Service::of(authority.clone())
        }
        None => Service::start(&bed).await?,
    };
    let mut others = Vec::new();
    let answer_time = others::answer_time(options.limit);
    // What cannot be compared is told with the whole run; who can be with the comparisons.
    let mut notes = Vec::new();
    let mut tell =
        |is_compared: bool, told: String| if is_compared { &mut others } else { &mut notes }.push(told);
    let mut node = None;
    if let Some(url) = &args.against_node {
        let (found, told) = others::node(url, &store, &facts, answer_time).await?;
        tell(found.is_some(), told);
        node = found;
    }
    let terminal = Terminal::new();
    let mut postgres = None;
    if let Some(url) = &args.against_postgres {
        let reader = Reader::new(store.view());
        let loading = others::postgres(url, &facts, reader, args.postgres_logs, answer_time, &terminal);
        let Some(prepared) = shutdown.unless(Box::pin(loading)).await else {
            return Err(AppError::Usage(
                "stopped while the database was loaded; what was loaded is made anew by the next run"
                    .to_owned(),
            ));
        };
        let (found, told) = prepared?;
        tell(found.is_some(), told);
        postgres = found;
    }
    drop(store);
    let mut session = Session {
        ways: service.ways.clone(),
        clients: args.clients.clone(),
        bed: (!args.no_cold && service.is_own())
            .then(|| Arc::clone(&bed) as Arc<dyn crate::bench::measure::Bed>),
        seconds: options.seconds,
        limit: options.limit,
        node,
        postgres,
        patience: [Patience::new(answer_time), Patience::new(answer_time)],
    };
    let cold = match (args.no_cold, service.is_own()) {
        (true, _) => "not measured (--no-cold)",
        (_, false) => "not measured: what a service of another process holds in memory is not ours to drop",
        _ => COLD,
    };
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        command: options.command,
        began: crate::clock::unix_seconds(clock::wall()) as u64,
        seconds: 0.0,
        ended_early: None,
        machine: Machine::here(),
        settings: Settings {
            seed,
            limit: options.limit.as_secs_f64(),
            clients: args.clients,
            cache_bytes: bed.cache_bytes() as u64,
            warm: WARM.to_owned(),
            cold: cold.to_owned(),
            service: service.told.clone(),
            ..Settings::default()
        },
        store: facts,
        head_at_end: None,
        questions: Vec::new(),
        left_out,
        others,
        compared: Vec::new(),
        notes,
    };
    say(&headline(&report));
    let run = Box::pin(session.run(asked, &mut report, &terminal));
    let stopped = shutdown.unless(run).await.is_none();
    terminal.bar.finish_and_clear();
    if stopped {
        report.ended_early = Some("stopped by a signal: this is what was measured until then".to_owned());
    }
    session.close(&mut report).await;
    report.machine.ended();
    report.seconds = (clock::now() - began).as_secs_f64();
    say(&report.table());
    for tally in &report.compared {
        say(&tally.to_string());
    }
    // What fails with one file keeps the other from nothing, nor from what is still to be tidied up.
    let texts = [
        (json, report.json().map_err(AppError::Usage)),
        (html, Ok(report.html())),
    ];
    let mut written = Ok(());
    for (output, text) in texts {
        let Some(output) = output else { continue };
        match text.and_then(|text| output.write(&text)) {
            Ok(path) => say(&format!("written to {}", path.display())),
            Err(error) => written = written.and(Err(error)),
        }
    }
    if args.postgres_drop
        && let Some((postgres, _)) = &session.postgres
    {
        postgres.drop_schema().await?;
        say(&format!("schema {} dropped", postgres.schema()));
    }
    drop(session);
    service.end().await;
    bed.rest().await;
    written?;
    match report.differing() {
        0 => Ok(()),
        differing => Err(AppError::Differing(differing)),
    }
}

fn headline(report: &Report) -> String {
    let (store, settings) = (&report.store, &report.settings);
    format!(
        "{}: {} logs of {} contracts in blocks {} to {}, {} bytes on disk, cache {} bytes\n{} cores, load {}; {}\nwarm: {}\ncold: {}\n",
        store.chain,
        store.logs,
        store.emitters,
        store.first_block,
        store.head,
        store.bytes,
        settings.cache_bytes,
        report.machine.cores,
        report.machine.load[0],
        settings.service,
        settings.warm,
        settings.cold
    )
}

fn list(asked: &[Question], left_out: &[crate::bench::question::LeftOut]) {
    for question in asked {
        let published = question.published;
        say(&format!(
            "{}\n  {} ({})\n  picked: {}",
            published.name, published.about, published.shows, question.picked
        ));
        if let Some(target) = question.targets.first() {
            say(&format!("  {target}"));
        }
    }
    for question in left_out {
        say(&format!(
            "{}\n  {}\n  left out: {}",
            question.published.name, question.published.about, question.reason
        ));
    }
}

/// The service that is asked.
struct Service {
    ways: Vec<Way>,
    told: String,
    /// What ends our own.
    own: Option<(Trigger, tokio::task::JoinHandle<usize>)>,
}

impl Service {
    /// A running one.
    fn of(authority: String) -> Self {
        Self {
            told: format!("a running service at {authority}, over HTTP only"),
            ways: vec![Way::Http(authority)],
            own: None,
        }
    }

    /// One of our own, on a port of its own, without a limit on the rate and without a log of requests.
    async fn start(bed: &Arc<Bed>) -> Result<Self, AppError> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(AppError::io("listen on 127.0.0.1"))?;
        let address = listener.local_addr().map_err(AppError::io("read the address"))?;
        let pool =
            Pool::new(PoolLimits::default()).map_err(AppError::io("start the threads of the service"))?;
        let chains = Arc::new(Lent(Arc::clone(bed)));
        let api = Arc::new(Api::new(chains, pool, ApiSettings::default()));
        let (trigger, mut shutdown): (Trigger, Shutdown) = pair();
        let handler = Arc::clone(&api) as Arc<dyn Handler>;
        let limits = Limits {
            drain_timeout: Duration::from_secs(2),
            ..Limits::default()
        };
        let serving = serve(listener, api, limits, async move { shutdown.fired().await });
        Ok(Self {
            ways: vec![Way::InProcess(handler), Way::Http(address.to_string())],
            told: "a service in this process, over its handler and over a loopback port; clients share its cores".to_owned(),
            own: Some((trigger, tokio::spawn(serving))),
        })
    }

    const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    async fn end(self) {
        drop(self.ways);
        if let Some((trigger, serving)) = self.own {
            trigger.fire();
            let _ = serving.await;
        }
    }
}

/// Refuses a service that does not have the block that is the head here.
async fn check_service(authority: &str, facts: &StoreFacts) -> Result<(), AppError> {
    let mut client = Way::Http(authority.to_owned())
        .client()
        .await
        .map_err(|error| AppError::Usage(error.to_string()))?;
    let target = format!(
        "/api/proxy?action=eth_getBlockByNumber&boolean=false&tag=0x{:x}&chain={}",
        facts.head, facts.chain
    );
    let body = client.body(&target).await;
    let body = body.map_err(|why| AppError::Usage(format!("the service at {authority}: {why}")))?;
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let hash = answer.pointer("/result/hash").and_then(serde_json::Value::as_str);
    if hash == Some(facts.head_hash.to_string().as_str()) {
        return Ok(());
    }
    Err(AppError::Usage(format!(
        "the service at {authority} has not this store's block {} {}: it serves another chain, or is behind",
        facts.head, facts.head_hash
    )))
}

/// A bar on a terminal, a line now and then elsewhere.
struct Terminal {
    bar: ProgressBar,
    lines: Lines,
}

impl Terminal {
    fn new() -> Self {
        Self {
            bar: progress::bar("{bar:30} {pos}/{len} {msg}"),
            lines: Lines::new(Duration::ZERO),
        }
    }

    fn loads(&self, done: u64, of: u64, what: &str) {
        self.bar.set_position(done);
        self.bar.set_message(what.to_owned());
        if self.lines.are_due(&self.bar) {
            tracing::info!(logs = done, of, "PostgreSQL: {what}");
        }
    }
}

impl Observer for Terminal {
    fn begins(&self, step: &str, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(step.to_owned());
        if self.lines.are_due(&self.bar) {
            tracing::info!(done, of, "measuring {step}");
        }
    }
}
