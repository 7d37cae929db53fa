//! The service's own routes.

use super::NONE;
use crate::api::bodies;
use crate::api::endpoint::Endpoint;
use crate::api::reports::HTML;
use crate::api::service::{Handler, Report};
use crate::metrics::Page;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        ids: &["home"],
        path: "/",
        doc: "Where things are; for a browser, a page that shows how the chains and the service are.",
        bodies: &[bodies::HOME],
        media: Some(HTML),
        example: "/",
        handler: Handler::Service(Report::Home),
        ..NONE
    },
    Endpoint {
        ids: &["health"],
        path: "/health",
        doc: "200 while the process answers.",
        bodies: &[bodies::HEALTH],
        example: "/health",
        handler: Handler::Service(Report::Health),
        ..NONE
    },
    Endpoint {
        ids: &["ready"],
        path: "/ready",
        doc: "200 while every configured chain is near its node's head and its sync has not stopped, else 503.",
        bodies: &[bodies::READY],
        example: "/ready",
        handler: Handler::Service(Report::Ready),
        ..NONE
    },
    Endpoint {
        ids: &["status"],
        path: "/status",
        doc: "What is known of every configured chain, and what was asked of the service.",
        bodies: &[bodies::SERVICE_STATUS],
        handler: Handler::Service(Report::Status),
        ..NONE
    },
    Endpoint {
        ids: &["openapi"],
        path: "/openapi.json",
        doc: "This list for programs (OpenAPI 3.1).",
        bodies: &[bodies::OPENAPI],
        handler: Handler::Service(Report::OpenApi),
        ..NONE
    },
    Endpoint {
        ids: &["docs"],
        path: "/docs",
        doc: "This list for people: a page on which every operation can be tried. It loads nothing from elsewhere.",
        media: Some(HTML),
        handler: Handler::Service(Report::Docs),
        ..NONE
    },
    Endpoint {
        ids: &["metrics"],
        path: "/metrics",
        doc: "Counters and gauges for Prometheus.",
        media: Some(Page::CONTENT_TYPE),
        handler: Handler::Service(Report::Metrics),
        ..NONE
    },
];
