// The OTLP receiver of the OpenTelemetry Collector, from its own modules. Each request that it takes is a line of OTLP as JSON on the standard
// output. The argument is the address to listen on.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: collector <host>:<port>")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string) error {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	given := map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}
	if err := confmap.NewFromStringMap(given).Unmarshal(config); err != nil {
		return err
	}
	lines, err := consumer.NewTraces(printer())
	if err != nil {
		return err
	}
	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	traces, err := factory.CreateTraces(ctx, settings, config, lines)
	if err != nil {
		return err
	}
	if err := traces.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	<-ctx.Done()
	return traces.Shutdown(context.Background())
}

func printer() consumer.ConsumeTracesFunc {
	var one sync.Mutex
	marshaler := ptrace.JSONMarshaler{}
	return func(_ context.Context, traces ptrace.Traces) error {
		text, err := marshaler.MarshalTraces(traces)
		if err != nil {
			return err
		}
		one.Lock()
		defer one.Unlock()
		_, err = os.Stdout.Write(append(text, '\n'))
		return err
	}
}
