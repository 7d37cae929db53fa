//! The endpoint of the group of logs.

use super::{CHAIN, CURSOR, NONE, OFFSET, PAGE, SORT};
use crate::api::endpoint::{Endpoint, Group, Kind, Parameter};
use crate::api::service::Handler;
use crate::api::{bodies, logs};
use crate::desk::logs::OPERATORS;

const OPERATOR: Kind = Kind::OneOf(&["and", "or"]);
const OPERATOR_DOC: &str = "How the two topics combine; clauses are and-ed, a topic in none is required.";

const fn operator(at: usize) -> Parameter {
    Parameter::query(OPERATORS[at].0, OPERATOR, OPERATOR_DOC)
}

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    ids: &["L1", "L2", "L3"],
    group: Group::Logs,
    path: "/api/logs/get-logs",
    parameters: &[
        CHAIN,
        Parameter::query(
            "address",
            Kind::Address,
            "Emitting contract; needed where no topic is given.",
        ),
        Parameter::query("topic0", Kind::Topics, "First topic."),
        Parameter::query("topic1", Kind::Topics, "Second topic."),
        Parameter::query("topic2", Kind::Topics, "Third topic."),
        Parameter::query("topic3", Kind::Topics, "Fourth topic."),
        operator(0),
        operator(1),
        operator(2),
        operator(3),
        operator(4),
        operator(5),
        Parameter::query("fromblock", Kind::Block, "First block.").or("first indexed block"),
        Parameter::query("toblock", Kind::Block, "Last block.").or("latest"),
        PAGE,
        OFFSET,
        SORT,
        CURSOR,
    ],
    doc: "Event logs by address (L1), by topics (L2), or by both (L3).",
    bodies: &[bodies::LOGS],
    example: "/api/logs/get-logs?address=0xe7f1725e7734ce288f8367e1bb143e90bb3f0512&topic0=0x6dfc21ac0c8c2db036305d8bc6f887630d35e156f37d5a7e2275bc05bc004846&offset=2",
    bad_requests: &[
        "At least one topic is required",
        "Operator topic0_1_opr names a topic that is not given",
        "Operator topic0_2_opr names a topic that is not given",
        "Operator topic0_3_opr names a topic that is not given",
        "Operator topic1_2_opr names a topic that is not given",
        "Operator topic1_3_opr names a topic that is not given",
        "Operator topic2_3_opr names a topic that is not given",
    ],
    handler: Handler::Chain(logs::get_logs),
    ..NONE
}];
