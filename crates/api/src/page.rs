//! Lists in pages: `?limit=` 1 to 100, an opaque cursor, the next one in the answer.

use actix_web::{HttpRequest, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::Problem;

const LIMIT_DEFAULT: i64 = 20;
const LIMIT_MAX: i64 = 100;

/// Which part of a list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Window {
    /// How many at most.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T: ToSchema> {
    /// In the list's order.
    pub data: Vec<T>,
    /// Ask with this for the next page; null on the last one.
    pub next_cursor: Option<String>,
}

impl Window {
    /// The window that a request asks for. Read it after authentication: whoever is not known is
    /// not told what is wrong with a query.
    ///
    /// # Errors
    /// `validation_failed` for a query that is none of a list.
    pub fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let query = web::Query::<Self>::from_query(request.query_string());
        query
            .map(web::Query::into_inner)
            .map_err(|_| Problem::invalid("", "The query is malformed."))
    }

    /// How many to show.
    ///
    /// # Errors
    /// `validation_failed` outside 1 to 100.
    pub fn limit(&self) -> Result<i64, Problem> {
        match self.limit.unwrap_or(LIMIT_DEFAULT) {
            limit @ 1..=LIMIT_MAX => Ok(limit),
            _ => Err(Problem::invalid("/limit", "A limit is 1 to 100.")),
        }
    }

    /// What the cursor stands for.
    ///
    /// # Errors
    /// `validation_failed` for a cursor that did not come from us.
    pub fn after<T: std::str::FromStr>(&self) -> Result<Option<T>, Problem> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let decoded = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|b| String::from_utf8(b).ok());
        let position = decoded.and_then(|text| text.parse().ok());
        position
            .map(Some)
            .ok_or_else(|| Problem::invalid("/cursor", "Use a next_cursor as it was given."))
    }
}

impl<T: ToSchema> Page<T> {
    /// A page out of one row more than was asked for, which tells whether there is a next one.
    pub fn of<R>(
        mut rows: Vec<R>,
        limit: i64,
        position: impl Fn(&R) -> String,
        body: impl Fn(R) -> T,
    ) -> Self {
        let limit = usize::try_from(limit).unwrap_or_default();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more).map(|row| URL_SAFE_NO_PAD.encode(position(row)));
        Self { data: rows.into_iter().map(body).collect(), next_cursor: last }
    }
}
