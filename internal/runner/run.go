// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// Runner carries out one call. Its fields are everything it takes from the
// world, so that a test can be the world.
type Runner struct {
	Config Config
	// Environ is the process's environment, in the form of os.Environ. It
	// supplies the secrets and the image's PATH.
	Environ []string
	// Random is a cryptographic source.
	Random io.Reader
	// Now is the time; it should carry a monotonic reading.
	Now func() time.Time
	// Pause waits, or returns an error as soon as the context has ended.
	Pause func(context.Context, time.Duration) error
	// Resolver looks up the hosts of HTTP and MCP effects.
	Resolver Resolver
	// KillGrace is how long a program may take to end after TERM.
	KillGrace time.Duration
	// Delivery is for how long the delivery of a result is tried.
	Delivery time.Duration
}

// Ending is how a run ended.
type Ending struct {
	Code ExitCode
	// Reason is empty when the call succeeded.
	Reason Reason
	// Err is for the log; it names no values. It may be set although a result
	// was delivered.
	Err error
}

// Run asks for the call, carries it out and delivers its result. The end of
// ctx means that the Pod is being stopped: before the call is redeemed the run
// ends, an effect that has begun is stopped, and its result is still delivered.
func (r *Runner) Run(ctx context.Context) Ending {
	service := newEndpoint(r.Config, r.Now, r.Pause)
	starting, cancel := context.WithTimeoutCause(ctx, r.Config.StartLimit, errUnavailable)
	defer cancel()
	if err := service.isolated(starting); err != nil {
		if errors.Is(err, errNotIsolated) {
			return Ending{ExitNotIsolated, ReasonEgressNotIsolated, err}
		}
		return Ending{ExitUnavailable, ReasonEndpointUnavailable, err}
	}
	nonce, err := attest.NewNonce(r.Random)
	if err != nil {
		return Ending{ExitUsage, ReasonBadConfiguration, err}
	}
	answer, asked, err := service.redeem(starting, nonce)
	if err != nil {
		return redeemEnding(err)
	}
	g, err := r.Config.verify(answer, nonce)
	if err != nil {
		r.reportMismatch(service, g, err)
		return Ending{ExitMismatch, refusedBy(err).reason, err}
	}
	began := r.Now()
	rep := r.perform(ctx, g, asked)
	return r.deliver(service, g, rep, began)
}

func redeemEnding(err error) Ending {
	switch {
	case errors.Is(err, errDenied):
		return Ending{ExitClaimDenied, ReasonClaimDenied, err}
	case errors.Is(err, errUnavailable):
		return Ending{ExitUnavailable, ReasonEndpointUnavailable, err}
	default:
		return Ending{ExitMismatch, ReasonTicketInvalid, err}
	}
}

// perform carries out the effect within the ticket's time.
func (r *Runner) perform(ctx context.Context, g grant, asked time.Time) report {
	if err := checkLimits(g.ticket.Limits); err != nil {
		return refused(ReasonEffectInvalid, err)
	}
	if ctx.Err() != nil {
		return refused(ReasonTerminated, errTerminated)
	}
	left := r.timeLeft(g.ticket, asked)
	if left <= 0 {
		return refused(ReasonDeadlinePassed, errors.New("there is no time left to begin; is the node's clock right?"))
	}
	limited, cancel := context.WithTimeoutCause(ctx, left, errTimedOut)
	defer cancel()
	return r.carryOut(limited, g)
}

func (r *Runner) carryOut(ctx context.Context, g grant) report {
	limits, secrets := g.ticket.Limits, secretsFrom(r.Environ)
	switch g.effect.Kind() {
	case contract.EffectCommand:
		c := commandRunner{imagePath: lookup(r.Environ, "PATH"), secrets: secrets, limits: limits, work: homeDir, grace: r.KillGrace}
		return c.run(ctx, *g.effect.Command)
	case contract.EffectHTTP:
		return httpRunner{resolver: r.Resolver, secrets: secrets, limits: limits}.run(ctx, *g.effect.HTTP)
	case contract.EffectMCP:
		return mcpRunner{resolver: r.Resolver, secrets: secrets, limits: limits}.run(ctx, *g.effect.MCP)
	default:
		return refused(ReasonEffectInvalid, contract.ErrEffectKind)
	}
}

// timeLeft is how long the effect may run: its own limit, but not beyond the
// ticket's deadline. The deadline is judged twice, by this node's clock and by
// the time that passed here since the call was asked for, so that neither a
// clock that is behind nor a process that was stopped runs a call after the
// operator has given it up.
func (r *Runner) timeLeft(t attest.Ticket, asked time.Time) time.Duration {
	now := r.Now()
	return min(
		time.Duration(t.Limits.TimeoutSeconds)*time.Second,
		t.Deadline.Sub(now),
		t.Deadline.Sub(t.IssuedAt)-now.Sub(asked),
	)
}

// deliver sends the result, also while the Pod is being stopped.
func (r *Runner) deliver(service *endpoint, g grant, rep report, began time.Time) Ending {
	signed, err := r.seal(g, rep, began)
	if err != nil {
		return Ending{ExitUndelivered, rep.reason, err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.Delivery)
	defer cancel()
	if err := service.deliver(ctx, signed); err != nil {
		return Ending{ExitUndelivered, rep.reason, fmt.Errorf("delivering the result: %w", err)}
	}
	return Ending{ExitDelivered, rep.reason, rep.cause}
}

// reportMismatch tells the service why its ticket was not used, where the
// ticket's signature at least says which call it speaks of.
func (r *Runner) reportMismatch(service *endpoint, g grant, cause error) {
	if g.ticket.Fingerprint == "" {
		return
	}
	// The process exits with the mismatch either way.
	_ = r.deliver(service, g, refusedBy(cause), r.Now())
}

func (r *Runner) seal(g grant, rep report, began time.Time) (attest.SignedResult, error) {
	limits := g.ticket.Limits
	stdout, stderr := rep.stdout, rep.stderr
	if stdout == nil {
		stdout = newCapture(0, 0)
	}
	if stderr == nil {
		stderr = newCapture(0, 0)
	}
	out, outCut := stdout.text(limits.StatusMaxBytes)
	errOut, errCut := stderr.text(min(limits.StatusMaxBytes, stderrMaxBytes))
	return attest.SealResult(g.key, g.keyID, attest.Result{
		ProposalUID:    r.Config.Proposal.UID,
		PodUID:         r.Config.PodUID,
		Fingerprint:    g.ticket.Fingerprint,
		Outcome:        rep.outcome,
		Reason:         string(rep.reason),
		ExitCode:       rep.exitCode,
		HTTPStatus:     rep.httpStatus,
		Stdout:         out,
		Stderr:         errOut,
		StdoutSHA256:   stdout.sum(),
		StderrSHA256:   stderr.sum(),
		StdoutBytes:    stdout.length,
		StderrBytes:    stderr.length,
		Truncated:      outCut || errCut,
		MediaType:      rep.mediaType,
		DurationMillis: max(0, r.Now().Sub(began).Milliseconds()),
		StartedAt:      began.UTC(),
	})
}
