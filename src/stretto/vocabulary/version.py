"""The version of the package; the build reads it here as well."""

VERSION = "0.1.0"
