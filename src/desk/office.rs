//! The desk that every dialect answers at: takes snapshots, does look-ups on the pool, asks the node, makes responses.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::http::{
    Delivery, FrameBuffers, FrameSource as _, Handled, HttpError, Lane, Lifetime, Pool, Request, Response,
    Traffic,
};
use crate::metrics::Page;
use crate::model::ChainName;
use crate::query::{from_memory, give_up, is_from_memory};

use super::answer::{Answer, Extra, Facts, Plan, Question, Quick, Snapshot, begun, whole};
use super::asking::Patience;
use super::caching::Determinants;
use super::context::{Chains, Settings};
use super::counting::{Counted, counted, counted_from_memory};
use super::faults::{log_refusal, not_configured, still_indexing};
use super::kept::{KeptAnswers, KeptKey};

/// What all dialects share; one for a process.
pub struct Desk {
    chains: Arc<dyn Chains>,
    pool: Pool,
    buffers: FrameBuffers,
    traffic: Arc<Traffic>,
    settings: Settings,
    kept: Option<KeptAnswers>,
}

/// How a dialect reads requests and says no.
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Reads the operation of a request again, which was read once already.
    fn plan(&self, request: &Request) -> Result<Plan, HttpError>;

    /// A refusal in the dialect's words.
    fn refuse(&self, request: &Request, error: HttpError) -> Response;
}

/// What came of a look-up.
enum Found {
    /// An answer, and the key that it may be kept by.
    Answer(Response, Option<KeptKey>),
    /// A refusal, and the snapshot that it speaks of where there was one.
    Refused(Option<Facts>, HttpError),
    /// What [`Answer::AskNode`] asks.
    Question(Facts, Question),
}

/// What came of trying at once.
#[expect(
    clippy::large_enum_variant,
    reason = "most are of the large one, which a box would make slower"
)]
enum Tried {
    Found(Found),
    /// Nothing: this is to be done on the pool.
    Not(Plan),
}

impl Desk {
    /// A desk for these chains, its look-ups done on `pool`, requests counted under the names of `operations`.
    #[must_use]
    pub fn new(
        chains: Arc<dyn Chains>,
        pool: Pool,
        settings: Settings,
        operations: impl IntoIterator<Item = String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            chains,
            buffers: FrameBuffers::new(pool.unsent().clone()),
            traffic: Arc::new(Traffic::new(operations).with_unsent(pool.unsent())),
            pool,
            kept: KeptAnswers::new(settings.kept_bytes),
            settings,
        })
    }

    /// The chains.
    pub(crate) fn chains(&self) -> &dyn Chains {
        &*self.chains
    }

    /// Where look-ups are done.
    pub(crate) const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Where requests are counted.
    pub(crate) const fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Choices of the operator.
    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is kept, on the page of figures.
    pub(crate) fn measure(&self, page: &mut Page) {
        if let Some(kept) = &self.kept {
            kept.measure(page);
        }
    }

    /// Answers an operation on a chain: at once where what it needs is in memory.
    pub(crate) fn operate<D: Dialect>(
        self: Arc<Self>,
        dialect: Arc<D>,
        request: Request,
        chain: ChainName,
        plan: Plan,
    ) -> Handled {
        let request = Arc::new(request);
        let tried = match self.try_at_once(&dialect, &request, chain, plan) {
            Ok(Tried::Found(Found::Answer(response, _))) => return Handled::Now(response),
            Ok(tried) => tried,
            Err(error) => return self.refuse(&*dialect, &request, error).into(),
        };
        Handled::later(async move {
            let answered = self.answer(&dialect, &request, chain, tried).await;
            answered.unwrap_or_else(|error| self.refuse(&*dialect, &request, error))
        })
    }

    async fn answer(
        self: &Arc<Self>,
        dialect: &Arc<impl Dialect>,
        request: &Arc<Request>,
        chain: ChainName,
        mut tried: Tried,
    ) -> Result<Response, HttpError> {
        let mut patience = Patience::default();
        loop {
            let found = match tried {
                Tried::Found(found) => found,
                Tried::Not(plan) => self.find(request, chain, plan).await?,
            };
            let (facts, told) = match found {
                Found::Answer(response, _) => return Ok(response),
                Found::Refused(facts, error) => (facts, Err(error)),
                Found::Question(facts, question) => match self.ask(chain, question, &mut patience).await {
                    Some(told) => (Some(facts), told),
                    None => {
                        tried = self.try_at_once(dialect, request, chain, dialect.plan(request)?)?;
                        continue;
                    }
                },
            };
            let mut response = match told {
                Ok(Answer::Whole(body, extra)) => self.delivered(Delivery::of(request), body, extra).await,
                Ok(_) => {
                    let error = HttpError::internal("the node's answer was a question");
                    self.refuse(&**dialect, request, error)
                }
                Err(error) => self.refuse(&**dialect, request, error),
            };
            if let Some(facts) = facts {
                facts.add_to(&mut response);
            }
            return Ok(response);
        }
    }

    /// What the node said, as the client wants it; as it is where the pool takes nothing more, for the node was asked already.
    async fn delivered(&self, delivery: Delivery, body: Bytes, extra: Extra) -> Response {
        let response = whole(body.clone(), extra.clone());
        if !delivery.compresses(&response) {
            return delivery.deliver_plain(response, Lifetime::Revalidate);
        }
        let by_pool = delivery.clone();
        let compressed = move || by_pool.deliver(response, Lifetime::Revalidate, None);
        let compressed = self.pool.run(Lane::Point, compressed).await;
        compressed.unwrap_or_else(|_| delivery.deliver_plain(whole(body, extra), Lifetime::Revalidate))
    }

    fn keeps(&self, plan: &Plan) -> bool {
        self.kept.is_some() && plan.is_worth_keeping()
    }

    /// Looks up out of memory, by the thread that was asked, what is quick or was kept. Gives the plan back where that cannot be.
    fn try_at_once(
        &self,
        dialect: &Arc<impl Dialect>,
        request: &Request,
        chain: ChainName,
        plan: Plan,
    ) -> Result<Tried, HttpError> {
        self.note(plan.quick);
        let is_kept = self.keeps(&plan);
        // Out of memory, as all that is done by this thread: to take a snapshot may be to look for imports.
        if is_kept && let Some(response) = from_memory(|| self.kept_answer(request, chain)).flatten() {
            return Ok(Tried::Found(Found::Answer(response, None)));
        }
        if !self.is_tried(plan.quick, request) {
            return Ok(Tried::Not(plan));
        }
        let look_up = || self.look_up(request, chain, plan, is_kept);
        Ok(
            match counted_from_memory(&self.traffic, request.operation(), look_up) {
                Some(found) => Tried::Found(self.keep(found)),
                // The plan went with the attempt. It was made of the request alone, and is made of it again.
                None => Tried::Not(dialect.plan(request)?),
            },
        )
    }

    /// Says that something was asked for, and how quick that is.
    pub(super) fn note(&self, quick: Quick) {
        if quick != Quick::AmongFew {
            self.pool.asked_else();
        }
    }

    /// Whether what is so quick is tried at once.
    pub(super) fn is_tried(&self, quick: Quick, request: &Request) -> bool {
        let goes_as_it_is = || !Delivery::of(request).is_coded();
        match quick {
            Quick::No => false,
            Quick::Yes => true,
            Quick::AsItIs => goes_as_it_is(),
            Quick::AmongFew => self.pool.makes_at_once() && goes_as_it_is(),
        }
    }

    /// Looks up on the pool.
    async fn find(
        self: &Arc<Self>,
        request: &Arc<Request>,
        chain: ChainName,
        plan: Plan,
    ) -> Result<Found, HttpError> {
        let (is_kept, lane) = (self.keeps(&plan), plan.lane);
        let (inner, asked) = (Arc::clone(self), Arc::clone(request));
        let looked_up = self.pool.run(lane, move || {
            counted(&inner.traffic, asked.operation(), || {
                inner.look_up(&asked, chain, plan, is_kept)
            })
        });
        Ok(self.keep(looked_up.await?))
    }

    /// The answer to a request that was kept, on the snapshot of now.
    fn kept_answer(&self, request: &Request, chain: ChainName) -> Option<Response> {
        let snapshot = self.snapshot(chain).ok()?;
        let key = Determinants::new(request, &snapshot).kept_key(&Delivery::of(request))?;
        let mut response = self.kept.as_ref()?.get(&key)?;
        snapshot.facts().add_to(&mut response);
        Some(response)
    }

    /// Keeps what was found, if it is worth it. What an attempt found that ended early never comes here.
    fn keep(&self, found: Found) -> Found {
        match (found, &self.kept) {
            (Found::Answer(response, Some(key)), Some(kept)) => {
                kept.offer(key, &response);
                Found::Answer(response, None)
            }
            (found, _) => found,
        }
    }

    /// Takes a snapshot, does the work on it, and makes the answer that the client wants of it. Blocks.
    fn look_up(&self, request: &Request, chain: ChainName, plan: Plan, is_kept: bool) -> Found {
        let snapshot = match self.snapshot(chain) {
            Ok(snapshot) => snapshot,
            Err(error) => return Found::Refused(None, error),
        };
        let facts = snapshot.facts();
        let (delivery, determinants) = (Delivery::of(request), Determinants::new(request, &snapshot));
        // Before the work: what the node says may be another thing after it.
        let key = is_kept.then(|| determinants.kept_key(&delivery)).flatten();
        // A body of a line has no tag of this kind, unless the client says that it has it.
        let is_line = plan.lane == Lane::Point && plan.quick == Quick::Yes && !delivery.is_conditional();
        let above = if is_line { Vec::new() } else { determinants.above() };
        let mut kept_as = None;
        let mut response = match determinants.unchanged(&delivery, &above) {
            Some(response) => response,
            None => match self
                .admit(plan.lane, request.holds())
                .and_then(|()| (plan.work)(&snapshot))
            {
                Ok(Answer::Whole(body, extra)) => {
                    let (lifetime, tag) = determinants.judge(extra.reach);
                    kept_as = key;
                    delivery.deliver(whole(body, extra), lifetime, tag)
                }
                Ok(Answer::Begun(first, source, extra)) => {
                    let (lifetime, tag) = determinants.judge(extra.reach);
                    let tag = tag.unwrap_or_else(|| determinants.tag(&above));
                    let source = Counted::new(source, &self.traffic, request.operation());
                    let response = if is_from_memory() {
                        // Its further frames are read out of memory alone as well; another source goes on where they cannot be.
                        let Some(waiting) = source.again() else {
                            give_up();
                            return Found::Refused(None, still_indexing());
                        };
                        begun(&self.pool, first, waiting, Some(Box::new(source)), extra)
                    } else {
                        begun(&self.pool, first, Box::new(source), None, extra)
                    };
                    delivery.deliver(response, lifetime, Some(tag))
                }
                Ok(Answer::AskNode(question)) => return Found::Question(facts, question),
                Err(error) => return Found::Refused(Some(facts), error),
            },
        };
        facts.add_to(&mut response);
        Found::Answer(response, kept_as)
    }

    /// Refuses a list while those that are not sent yet take all the room that they may; its own connection holds so many bytes of
    /// them.
    pub(super) fn admit(&self, lane: Lane, connection: usize) -> Result<(), HttpError> {
        if lane == Lane::Point {
            return Ok(());
        }
        let admitted = self.pool.unsent().refuse_when_full(connection);
        if admitted.is_err() {
            self.traffic.list_refused();
        }
        admitted
    }

    /// A snapshot of a chain. Blocks.
    pub(crate) fn snapshot(&self, chain: ChainName) -> Result<Snapshot, HttpError> {
        let status = self.chains.status(chain);
        let Some(reader) = self.chains.reader(chain) else {
            // A chain that is synced has a store as soon as its node has said which chain it is.
            return Err(match status {
                Some(_) => still_indexing(),
                None => not_configured(chain),
            });
        };
        if reader.is_empty() {
            return Err(still_indexing());
        }
        // A sync hears for itself.
        let remembering = status.is_none().then_some(&self.chains);
        Ok(Snapshot {
            chain,
            reader,
            node_heard: remembering.and_then(|chains| chains.node_heard(chain)),
            safe_heard: remembering.and_then(|chains| chains.safe_heard(chain)),
            has_node: self.chains.has_node(chain),
            extent: OnceLock::new(),
            status,
            buffers: self.buffers.clone(),
        })
    }

    /// The refusal as a response; what only the log may know goes there.
    pub(crate) fn refuse(&self, dialect: &impl Dialect, request: &Request, error: HttpError) -> Response {
        log_refusal(request.id().as_str(), request.path(), &error);
        dialect.refuse(request, error)
    }
}
