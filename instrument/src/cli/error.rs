//! Why a command came to nothing: a line on standard error, and an exit code.

use thiserror::Error;

use crate::app::AppError;
use crate::cache::CacheError;
use crate::interrupt::{self, Interrupted};
use crate::jdk::JdkError;
use crate::run::RunError;
use crate::staging::StagingError;
use crate::verify::{Finding, VerifyError};

/// Why a command failed.
#[derive(Debug, Error)]
pub(super) enum Error {
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    Jdk(#[from] JdkError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Error {
    /// Whatever goes wrong once the user asked to stop, that is why.
    pub(super) fn unless_interrupted(self) -> Self {
        interrupt::check().err().map_or(self, Self::Interrupted)
    }

    /// Findings of `--check`.
    pub(super) fn findings(&self) -> &[Finding] {
        match self {
            Self::App(AppError::Staging(StagingError::Check { findings, .. }))
            | Self::Jdk(JdkError::Staging(StagingError::Check { findings, .. })) => findings,
            _ => &[],
        }
    }

    /// The process's exit code: 2 for usage, 130 for Ctrl-C as shells have it, else 1.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::App(error) if error.is_usage() => 2,
            Self::Jdk(error) if error.is_usage() => 2,
            Self::Run(error) => error.exit_code(),
            Self::Interrupted(_) => 130,
            _ => 1,
        }
    }
}
