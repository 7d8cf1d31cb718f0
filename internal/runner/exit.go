// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

// ExitCode is how the process ends. Codes follow sysexits.h where one fits.
// They are hints for people and for the operator's messages: whoever can write
// a Pod's status can forge them, so nothing is decided on one.
type ExitCode int

const (
	// ExitDelivered: the result was delivered, whatever the tool's outcome.
	// The Job of a failed tool completes, because the Job's task is to report.
	ExitDelivered ExitCode = 0
	// ExitUsage: the Pod's template and this binary do not fit together. No effect.
	ExitUsage ExitCode = 64
	// ExitUnavailable: the execution endpoint did not answer in time. No effect.
	ExitUnavailable ExitCode = 69
	// ExitUndelivered: the effect may have happened and its result could not
	// be delivered.
	ExitUndelivered ExitCode = 70
	// ExitClaimDenied: the endpoint did not grant the call to this Pod. No effect.
	ExitClaimDenied ExitCode = 75
	// ExitNotIsolated: a connection that no rule allows succeeded. The call
	// was not asked for. No effect.
	ExitNotIsolated ExitCode = 76
	// ExitMismatch: what the endpoint sent is not the call that was decided
	// on, for this Pod, now. No effect.
	ExitMismatch ExitCode = 78
)

// Reason is a fixed word for why a call did not succeed. Reasons appear in
// results and in the termination message; they never carry text of a tool.
type Reason string

// Reasons for ending before any effect has begun.
const (
	// ReasonBadConfiguration goes with [ExitUsage].
	ReasonBadConfiguration Reason = "BadConfiguration"
	// ReasonEndpointUnavailable goes with [ExitUnavailable].
	ReasonEndpointUnavailable Reason = "EndpointUnavailable"
	// ReasonClaimDenied goes with [ExitClaimDenied].
	ReasonClaimDenied Reason = "ClaimDenied"
	// ReasonEgressNotIsolated goes with [ExitNotIsolated].
	ReasonEgressNotIsolated Reason = "EgressNotIsolated"
	// ReasonTicketInvalid goes with [ExitMismatch]: no ticket signed by a
	// trusted key could be read.
	ReasonTicketInvalid Reason = "TicketInvalid"
	// ReasonTicketForeign goes with [ExitMismatch]: the ticket is for another
	// proposal, Pod or nonce.
	ReasonTicketForeign Reason = "TicketForeign"
	// ReasonFingerprintMismatch goes with [ExitMismatch]: the call in the
	// ticket is not the one its fingerprint names.
	ReasonFingerprintMismatch Reason = "FingerprintMismatch"
	// ReasonEffectInvalid: the effect cannot be carried out as it is written.
	// Preparation refuses such effects, so this means two versions differ.
	ReasonEffectInvalid Reason = "EffectInvalid"
	// ReasonDeadlinePassed: the ticket arrived, or the process was resumed,
	// too late to begin.
	ReasonDeadlinePassed Reason = "DeadlinePassed"
	// ReasonSecretMissing: the Pod does not carry a secret that the effect names.
	ReasonSecretMissing Reason = "SecretMissing"
	// ReasonSecretUnusable: a secret's value cannot stand where it is put, for
	// example a line break in a header.
	ReasonSecretUnusable Reason = "SecretUnusable"
	// ReasonCredentialHostMismatch: a secret would go to a host that it is not for.
	ReasonCredentialHostMismatch Reason = "CredentialHostMismatch"
	// ReasonAddressNotAllowed: the host resolves to an address that the effect
	// may not reach.
	ReasonAddressNotAllowed Reason = "AddressNotAllowed"
	// ReasonConnectFailed: no connection to the server, so nothing was sent.
	// It includes names that do not resolve and certificates that do not verify.
	ReasonConnectFailed Reason = "ConnectFailed"
	// ReasonToolChanged: the MCP server's tool is not the one that was pinned.
	ReasonToolChanged Reason = "ToolChanged"
	// ReasonServerUnusable: the MCP server could not be initialised or did not
	// list its tools.
	ReasonServerUnusable Reason = "ServerUnusable"
	// ReasonProgramNotFound: the image does not hold the program.
	ReasonProgramNotFound Reason = "ProgramNotFound"
	// ReasonProgramNotExecutable: the kernel refused to execute the program.
	ReasonProgramNotExecutable Reason = "ProgramNotExecutable"
	// ReasonWorkingDirMissing: the image does not hold the working directory.
	ReasonWorkingDirMissing Reason = "WorkingDirMissing"
	// ReasonStartFailed: the program could not be started for another reason.
	ReasonStartFailed Reason = "StartFailed"
)

// Reasons for ending after the effect has begun.
const (
	// ReasonNonZeroExit: the program ended with an exit code other than 0.
	ReasonNonZeroExit Reason = "NonZeroExit"
	// ReasonKilledBySignal: the program was ended by a signal that did not
	// come from the runner, such as the kernel's when memory ran out.
	ReasonKilledBySignal Reason = "KilledBySignal"
	// ReasonTimedOut: the effect was stopped at its time limit.
	ReasonTimedOut Reason = "TimedOut"
	// ReasonTerminated: the Pod was asked to stop while the effect ran.
	ReasonTerminated Reason = "Terminated"
	// ReasonOutputTooLarge: the output exceeded what is read for the digest;
	// the effect was stopped there.
	ReasonOutputTooLarge Reason = "OutputTooLarge"
	// ReasonOutputIncomplete: the program ended but something it left behind
	// kept the output open.
	ReasonOutputIncomplete Reason = "OutputIncomplete"
	// ReasonOutputFileMissing: the program ended with exit code 0 without the
	// file that its output should be in.
	ReasonOutputFileMissing Reason = "OutputFileMissing"
	// ReasonOutputFileUnusable: that file is no regular file, lies behind a
	// symbolic link, or cannot be read.
	ReasonOutputFileUnusable Reason = "OutputFileUnusable"
	// ReasonStatusNotSuccess: the HTTP status is not one that means success.
	ReasonStatusNotSuccess Reason = "StatusNotSuccess"
	// ReasonResponseLost: the request was sent, at least in part, and no
	// complete response came back. Whether it had an effect is unknown.
	ReasonResponseLost Reason = "ResponseLost"
	// ReasonToolError: the MCP server answered that its tool failed.
	ReasonToolError Reason = "ToolError"
	// ReasonProtocolError: the MCP server answered the call with an error of
	// the protocol or with something that is not a result.
	ReasonProtocolError Reason = "ProtocolError"
)

// Unknown reports whether a result with this reason leaves open what the
// effect did on the other side. Such a call must not be repeated unseen.
func (r Reason) Unknown() bool { return r == ReasonResponseLost }
