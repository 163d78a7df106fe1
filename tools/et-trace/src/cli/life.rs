//! `et-trace object` and `et-trace field`: what became of one object's references, or of one field's.

use clap::Args;
use et_analysis::Span;
use et_analysis::field::{self as fields, FieldError};
use et_analysis::heap::Moment;
use et_analysis::object::{self as objects, ObjectError};

use super::analyses::{Opened, answer};
use super::{CliError, InputArgs};
use et_reader::record::ObjectId;

/// What is shown of references.
#[derive(Debug, Args)]
struct ReferencesArgs {
    /// Only references that were there at this moment or later
    #[arg(long, value_name = "MOMENT")]
    from: Option<Moment>,
    /// Only references that were there at this moment or earlier
    #[arg(long, value_name = "MOMENT")]
    to: Option<Moment>,
    /// How many entries of each list to show
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "full")]
    top: usize,
    /// Show everything: no list is shortened
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ReferencesArgs {
    fn span(&self) -> Span {
        Span { from: self.from.clone(), to: self.to.clone() }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Moments are 40% (of calls and returns), 12.5s, tick:N, bytes:N (allocated) or end.
The first such question makes a table of all references, and keeps it with the life table.

Examples:
  et-trace object app.ettrace 1f3a                        who made it, what it held, who held it, how it died
  et-trace object app.ettrace 1f3a --from 40% --to 60%    only references of that time
  et-trace object app.ettrace 1f3a --full                 every reference")]
pub(super) struct ObjectArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The object: its id, hexadecimal, as in texts and in `et-trace objects`
    #[arg(value_name = "OBJECT")]
    object: ObjectId,
    #[command(flatten)]
    show: ReferencesArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  et-trace field app.ettrace shop.Order.customer              who stores into it, what, and how long that stays
  et-trace field app.ettrace shop.Cart.items --of 1f3a        its history in one object
  et-trace field app.ettrace 'shop.Cache.*' --from 50%        all fields of a class, in the second half")]
pub(super) struct FieldArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The field with its class, as reports name it: java.util.HashMap.table; * is any text
    #[arg(value_name = "FIELD")]
    field: String,
    /// Only the field of this object, and what it held in order
    #[arg(long, value_name = "OBJECT")]
    of: Option<ObjectId>,
    #[command(flatten)]
    show: ReferencesArgs,
}

pub(super) fn object(args: &ObjectArgs) -> Result<u8, CliError> {
    let query = objects::Query {
        id: args.object,
        span: args.show.span(),
        top: args.show.top,
        full: args.show.full,
        most: None,
        known: None,
    };
    let find = |opened: &Opened| {
        let found = objects::life(
            &opened.source,
            &opened.population,
            &*opened.population.groups,
            &*opened.references()?,
            &query,
        );
        found.map_err(|error| match error {
            ObjectError::Rows(error) => CliError::Rows(error),
            error => CliError::Lacks { path: args.input.trace.clone(), what: error.to_string() },
        })
    };
    answer(&args.input, args.show.json, find, |life| objects::render(life, &query))
}

pub(super) fn field(args: &FieldArgs) -> Result<u8, CliError> {
    let query = fields::Query {
        field: args.field.clone(),
        of: args.of,
        span: args.show.span(),
        top: args.show.top,
        full: args.show.full,
    };
    let find = |opened: &Opened| {
        let found = fields::field(&opened.source, &opened.population, &*opened.references()?, &query);
        found.map_err(|error| match error {
            FieldError::Rows(error) => CliError::Rows(error),
            error => CliError::Lacks { path: args.input.trace.clone(), what: error.to_string() },
        })
    };
    answer(&args.input, args.show.json, find, |found| fields::render(found, &query))
}
