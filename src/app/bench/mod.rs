//! `quarry bench`: opens what is measured, serves it, and prints and writes what was found.

mod bed;
mod options;
mod others;
mod output;
mod service;
mod terminal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::bed::Bed;
use self::options::Options;
use self::output::{Output, is_stdout};
use self::service::Service;
use self::terminal::Terminal;
use super::process::{blocking, on_signals, say};
use super::{AppError, stderr};
use crate::bench::against::Peer;
use crate::bench::against::postgres::{Postgres, PostgresError};
use crate::bench::load::LoadedLogs;
use crate::bench::look::Budget;
use crate::bench::question::{LeftOut, Question};
use crate::bench::report::{Machine, Report, SCHEMA, Settings};
use crate::bench::sample;
use crate::bench::session::{Behind, Session};
use crate::bench::set::questions;
use crate::bench::statistics::{Statistics, StoreFacts};
use crate::cli::BenchArgs;
use crate::clock;
use crate::machine::who_maps;
use crate::node::Node;
use crate::query::Reader;
use crate::shutdown::Shutdown;
use crate::store::{Store, is_written};

const WARM: &str = "every path of a question is asked once, then again and again in one open store: blocks of the store come \
                    from its block cache or its rows from those it keeps, pages of its arrays from the system's file cache; each \
                    answer is made anew, of no answer that was kept (Cache-Control: no-cache), and so are walks over several lists";
const WARM_ELSEWHERE: &str = "every path of a question is asked once, then again and again of a service of another process; its \
                              caches are its own, and what it keeps of walks over several lists is used";
const COLD: &str = "before each answer the store is closed, the system is asked to forget the cached pages of its files \
                    (posix_fadvise, DONTNEED), the store is opened with an empty block cache, and what opening has read is \
                    forgotten too; pages stay that another process has mapped, and disks and hosts have caches of their own: \
                    the bytes that came from the disk are counted";

/// How long may be looked for parameters: this, or a part of the run's limit where that is less.
const PICKING_TIME: Duration = Duration::from_secs(30);
const PICKING_TIME_MIN: Duration = Duration::from_secs(2);
const PICKING_OF_LIMIT: u32 = 5;
/// How long a schema may take to be dropped once the end was asked for.
const DROP_TIME_STOPPED: Duration = Duration::from_secs(12);

/// `quarry bench`.
pub(super) async fn bench(args: BenchArgs) -> Result<(), AppError> {
    let options = Options::check(&args)?;
    let (_trigger, shutdown) = on_signals()?;
    let outputs = Output::check([("json", args.json.as_deref()), ("html", args.html.as_deref())])?;
    let mut run = Run {
        args,
        options,
        shutdown,
        terminal: Terminal::new(),
        began: clock::now(),
        began_at: clock::unix_seconds(clock::wall()) as u64,
        machine: Machine::here(),
        database: None,
    };
    let outcome = run.run(outputs).await;
    match (outcome, run.tidy_up().await) {
        (Err(error), Err(other)) => {
            tracing::warn!("{other}");
            Err(error)
        }
        (outcome, tidied) => outcome.and(tidied),
    }
}

/// A run, from what it was given to what is left in the end.
struct Run {
    args: BenchArgs,
    options: Options,
    shutdown: Shutdown,
    terminal: Terminal,
    began: Instant,
    /// The same, Unix seconds.
    began_at: u64,
    /// As it was then.
    machine: Machine,
    /// The database, as long as no session has it.
    database: Option<Postgres>,
}

/// What is measured, ready for it.
struct Prepared {
    facts: StoreFacts,
    asked: Vec<Question>,
    left_out: Vec<LeftOut>,
    service: Service,
    node: Option<Node>,
    loaded: Option<LoadedLogs>,
    /// Who is compared with, and who cannot be.
    others: Vec<String>,
    notes: Vec<String>,
}

impl Run {
    async fn run(&mut self, outputs: [Option<Output>; 2]) -> Result<(), AppError> {
        let mut shutdown = self.shutdown.clone();
        self.terminal.prepares("the store was opened");
        let bed = Bed::make(&self.args, &mut shutdown).await?;
        let Some(prepared) = shutdown.unless(Box::pin(self.prepare(&bed))).await else {
            self.terminal.bar.finish_and_clear();
            if let Some(database) = &self.database {
                database.cancel().await;
            }
            bed.rest().await;
            return Err(self.terminal.stopped());
        };
        match prepared? {
            Some(prepared) => self.measure(&bed, prepared, outputs).await,
            None => Ok(()),
        }
    }

    /// Picks the questions and reaches everybody who is asked; nothing where it was only to list them.
    async fn prepare(&mut self, bed: &Arc<Bed>) -> Result<Option<Prepared>, AppError> {
        let store = bed.store()?;
        self.terminal.prepares("parameters were picked");
        let statistics = self.pick(&store).await?;
        let facts = statistics.store.clone();
        if facts.days.is_none() {
            return Err(AppError::Usage("the store holds no blocks yet".to_owned()));
        }
        let (asked, left_out) = questions(&statistics, &self.options.only);
        if self.args.list {
            list(&asked, &left_out);
            return Ok(None);
        }
        // What cannot be compared is told with the whole run; who can be with the comparisons.
        let (mut others, mut notes) = (Vec::new(), Vec::new());
        if statistics.is_cut {
            notes.push(
                "parameters were picked out of a part of the sample: there was no time for all of it (--limit)".to_owned(),
            );
        }
        self.terminal.prepares("the service was reached");
        let service = match &self.options.authority {
            Some(authority) => Service::of(authority.clone(), &facts).await?,
            None => Service::start(bed).await?,
        };
        let answer_time = others::answer_time(self.options.limit);
        let mut tell =
            |is_compared: bool, told: String| if is_compared { &mut others } else { &mut notes }.push(told);
        let is_about_logs = asked.iter().any(|question| question.filter.is_some());
        if !is_about_logs && (self.args.against_node.is_some() || self.args.against_postgres.is_some()) {
            let why = match facts.logs {
                0 => "the store has no logs",
                _ => "no question about logs is asked",
            };
            tell(false, format!("nothing was compared: {why}"));
        }
        let mut node = None;
        if let Some(url) = self.args.against_node.as_ref().filter(|_| is_about_logs) {
            self.terminal.prepares("the node was reached");
            let (found, told) = others::node(url, &store, &facts, answer_time).await?;
            tell(found.is_some(), told);
            node = found;
        }
        let mut loaded = None;
        if let Some(url) = self.args.against_postgres.as_ref().filter(|_| is_about_logs) {
            let loading = others::Loading {
                chain: self.args.chain,
                reader: Reader::new(store.view()),
                logs_max: self.args.postgres_logs,
                answer_time,
                terminal: &self.terminal,
            };
            let (found, told) = loading.load(url, &mut self.database).await?;
            tell(true, told);
            loaded = Some(found);
        }
        Ok(Some(Prepared {
            facts,
            asked,
            left_out,
            service,
            node,
            loaded,
            others,
            notes,
        }))
    }

    /// Reads what questions are picked by.
    async fn pick(&self, store: &Arc<Store>) -> Result<Statistics, AppError> {
        let (chain, seed, bytes) = (self.args.chain, self.args.seed, store.bytes_on_disk());
        let (view, shutdown) = (store.view(), self.shutdown.clone());
        let time = self.options.limit / PICKING_OF_LIMIT;
        let time = time.clamp(PICKING_TIME_MIN, PICKING_TIME);
        blocking(move || {
            let is_stopped = || shutdown.is_fired();
            let budget = Budget::new(time, &is_stopped);
            Ok(sample::statistics(
                &Reader::new(view),
                chain,
                bytes,
                seed,
                budget,
            )?)
        })
        .await
    }

    async fn measure(
        &mut self,
        bed: &Arc<Bed>,
        prepared: Prepared,
        outputs: [Option<Output>; 2],
    ) -> Result<(), AppError> {
        let Prepared { service, asked, .. } = &prepared;
        let answer_time = others::answer_time(self.options.limit);
        let not_cold = self.not_cold(bed, service);
        let mut session = Session {
            ways: service.ways.clone(),
            clients: self.args.clients.clone(),
            bed: not_cold
                .is_none()
                .then(|| Arc::clone(bed) as Arc<dyn crate::bench::measure::Bed>),
            seconds: self.options.seconds,
            limit: self.options.limit,
            node: prepared.node.clone().map(|node| Peer::new(node, answer_time)),
            postgres: self
                .database
                .take()
                .zip(prepared.loaded)
                .map(|database| Peer::new(database, answer_time)),
            behind: Behind::default(),
        };
        let asked = asked.clone();
        let mut report = self.report(bed, &prepared, not_cold.unwrap_or(COLD));
        let service = prepared.service;
        self.tells(&headline(&report));
        let run = Box::pin(session.run(asked, &mut report, &self.terminal));
        let stopped = self.shutdown.unless(run).await.is_none();
        self.terminal.bar.finish_and_clear();
        if stopped {
            report.ended_early = Some("stopped by a signal: this is what was measured until then".to_owned());
            if let Some(peer) = &session.postgres {
                peer.who.0.cancel().await;
            }
        }
        session.close(&mut report, stopped).await;
        report.machine.ended();
        report.seconds = (clock::now() - self.began).as_secs_f64();
        let is_empty = stopped && report.is_empty();
        let written = if is_empty {
            Ok(())
        } else {
            self.show(&report, outputs)
        };
        self.database = session.postgres.take().map(|peer| peer.who.0);
        drop(session);
        service.end().await;
        bed.rest().await;
        written?;
        if is_empty {
            self.terminal.prepares("the first question was asked");
            return Err(self.terminal.stopped());
        }
        match (report.differing(), report.unanswered()) {
            (0, Some(why)) if !stopped => Err(AppError::Usage(why)),
            (0, _) => Ok(()),
            (differing, _) => Err(AppError::Differing(differing)),
        }
    }

    /// Prints a text for whoever reads, where the JSON leaves standard output to it.
    fn tells(&self, text: &str) {
        match &self.args.json {
            Some(json) if is_stdout(json) => stderr::say(text),
            _ => say(text),
        }
    }

    /// Prints what was found and writes it. What fails with one file keeps the other from nothing.
    fn show(&self, report: &Report, [json, html]: [Option<Output>; 2]) -> Result<(), AppError> {
        self.tells(&report.table());
        for tally in &report.compared {
            self.tells(&tally.to_string());
        }
        let texts = [
            (json, report.json().map_err(AppError::Usage)),
            (html, Ok(report.html())),
        ];
        let mut written = Ok(());
        for (output, text) in texts {
            let Some(output) = output else { continue };
            match text.and_then(|text| output.write(&text)) {
                Ok(Some(path)) => self.tells(&format!("written to {}", path.display())),
                Ok(None) => {}
                Err(error) => {
                    written = Err(match written {
                        Ok(()) => error,
                        Err(before) => AppError::Usage(format!("{before}; {error}")),
                    });
                }
            }
        }
        written
    }

    /// Why nothing is measured with a cold store; `None` where that is.
    fn not_cold(&self, bed: &Bed, service: &Service) -> Option<&'static str> {
        if self.args.no_cold {
            Some("not measured (--no-cold)")
        } else if !service.is_own() {
            Some("not measured: what a service of another process holds in memory is not ours to drop")
        } else if self.args.cold {
            None
        } else if is_written(bed.directory()) {
            Some(
                "not measured: another process writes this store, and what the system is asked to forget is what that reads, too \
                 (--cold measures it nevertheless)",
            )
        } else if who_maps(bed.directory()).is_some() {
            Some(
                "not measured: another process serves this store, whose arrays stay in memory with it (--cold measures it \
                 nevertheless)",
            )
        } else {
            None
        }
    }

    /// A report of a run that begins.
    fn report(&self, bed: &Bed, prepared: &Prepared, cold: &str) -> Report {
        let service = &prepared.service;
        Report {
            version: env!("CARGO_PKG_VERSION"),
            command: self.options.command.clone(),
            schema: SCHEMA,
            began: self.began_at,
            seconds: 0.0,
            ended_early: None,
            machine: self.machine.clone(),
            settings: Settings {
                seed: self.args.seed,
                limit: self.options.limit.as_secs_f64(),
                clients: self.args.clients.clone(),
                cache_bytes: service.is_own().then(|| bed.cache_bytes() as u64),
                warm: if service.is_own() { WARM } else { WARM_ELSEWHERE }.to_owned(),
                cold: cold.to_owned(),
                service: service.told.clone(),
                ..Settings::default()
            },
            store: prepared.facts.clone(),
            head_at_end: None,
            questions: Vec::new(),
            left_out: prepared.left_out.clone(),
            others: prepared.others.clone(),
            compared: Vec::new(),
            notes: prepared.notes.clone(),
        }
    }

    /// Drops the schema where that was asked for, however the run ended, also where no session came to use it.
    async fn tidy_up(&mut self) -> Result<(), AppError> {
        let Some(url) = self
            .args
            .against_postgres
            .as_ref()
            .filter(|_| self.args.postgres_drop)
        else {
            return Ok(());
        };
        if self.args.list {
            return Ok(());
        }
        let schema = Postgres::schema_of(self.args.chain);
        let database = self.database.take();
        let dropping = Box::pin(async {
            let mut died = None;
            if let Some(database) = database {
                match database.drop_schema().await {
                    // Where only the connection died the server is there, and is asked over another one.
                    Err(error) if !database.answers().await => died = Some(error),
                    dropped => return dropped,
                }
            }
            let answer_time = others::answer_time(self.options.limit);
            let dropped = Postgres::drop_anew(url, self.args.chain, answer_time, died.is_some()).await;
            match (dropped, died) {
                // The session of the run has it yet.
                (Err(PostgresError::Taken(_)), Some(why)) => Err(why),
                (dropped, _) => dropped,
            }
        });
        // Who has asked for the end already waits for no more than this, or asks again.
        let dropped = match self.shutdown.is_fired() {
            true => {
                tracing::info!("the schema {schema} is dropped");
                tokio::time::timeout(DROP_TIME_STOPPED, dropping).await.ok()
            }
            false => self.shutdown.clone().unless(dropping).await,
        };
        let stays =
            |why: &dyn std::fmt::Display| AppError::Usage(format!("the schema {schema} stays: {why}"));
        match dropped {
            Some(Ok(true)) => self.tells(&format!("schema {schema} dropped")),
            Some(Ok(false)) => {}
            Some(Err(error)) => return Err(stays(&error)),
            None => return Err(stays(&"it was stopped before that was dropped")),
        }
        Ok(())
    }
}

fn headline(report: &Report) -> String {
    let (store, settings) = (&report.store, &report.settings);
    format!(
        "{}: {} logs of {} contracts in blocks {} to {}, {} bytes on disk, {}\n{} cores, load {}; {}\nwarm: {}\ncold: {}\n",
        store.chain,
        store.logs,
        store.emitters,
        store.first_block,
        store.head,
        store.bytes,
        settings.cache_bytes.map_or_else(
            || "cache not known".to_owned(),
            |bytes| format!("cache {bytes} bytes")
        ),
        report.machine.cores,
        report.machine.load[0],
        settings.service,
        settings.warm,
        settings.cold
    )
}

fn list(asked: &[Question], left_out: &[LeftOut]) {
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
